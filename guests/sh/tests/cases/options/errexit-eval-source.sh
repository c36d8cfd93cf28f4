set -e; echo false > s; eval 'true'; (. ./s; echo no) || echo caught; eval 'false'; echo never
