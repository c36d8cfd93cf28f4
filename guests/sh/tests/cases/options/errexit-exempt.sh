set -e
if false; then :; fi; false || true; false && true; ! true; while false; do :; done; until true; do :; done; x=$(true); [ a = b ] || echo ok; f() { false; echo "f continues"; }; if f; then echo yes; fi; f && echo andf; f || true; ! f; { false || true; }; (false || true); echo end; false | true; echo pipe; true && ! false; echo x
