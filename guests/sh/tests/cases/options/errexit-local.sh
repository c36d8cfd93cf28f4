set -e; f() { local x=$(false); echo "masked"; }; f; g() { local y; y=$(false); echo no; }; g; echo never
