sh -c 'echo posix; [ -o posix ] && echo on'; bash -c 'set -o posix; echo $-' | grep -c h; sh -c 'alias x="echo aliased"
x'
