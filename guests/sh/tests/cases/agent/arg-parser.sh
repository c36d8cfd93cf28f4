parse() {
  local verbose=false output= positional=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -v|--verbose) verbose=true; shift ;;
      -o|--output) output="$2"; shift 2 ;;
      --output=*) output="${1#*=}"; shift ;;
      --) shift; positional+=("$@"); break ;;
      -*) echo "unknown: $1" >&2; return 2 ;;
      *) positional+=("$1"); shift ;;
    esac
  done
  echo "verbose=$verbose output=$output positional=(${positional[*]}) n=${#positional[@]}"
}
parse -v --output=x a "b c"; parse -o y -- -z; parse --bad 2>/dev/null; echo $?; parse
