# What yq has besides jq's functions, or otherwise. Each is read when a program first calls it.

def upcase: ascii_upcase;
def downcase: ascii_downcase;
def to_number: tonumber;
def to_string: tostring;
def to_json: tojson;
def to_json($indent): tojson;
def from_json: fromjson;
def to_csv: format("csv");
def to_tsv: format("tsv");
def filter(f): map(select(f));
def omit($keys): delpaths([$keys[] | [.]]);
def pick(keys): . as $whole | keys as $keys | if type == "array" then [$keys[] | $whole[.]] else reduce ($keys[] | select(. as $key | $whole | has($key))) as $key ({}; .[$key] = $whole[$key]) end;
def with(paths; f): paths |= f;
def explode(paths): .;
def sort_keys(paths): paths |= (if type == "object" then to_entries | sort_by(.key) | from_entries else . end);
def fi: file_index;
def di: document_index;
def documentIndex: document_index;
def fileIndex: file_index;
def kind: if type == "object" then "map" elif type == "array" then "seq" else "scalar" end;
def tag: if type == "object" then "!!map" elif type == "array" then "!!seq" elif type == "string" then "!!str" elif type == "boolean" then "!!bool" elif type == "null" then "!!null" elif floor == . then "!!int" else "!!float" end;
def _merge_appending($over): if type == "object" and ($over | type) == "object" then reduce ($over | keys_unsorted[]) as $key (.; .[$key] |= _merge_appending($over[$key])) elif type == "array" and ($over | type) == "array" then . + $over else $over end;
def _merged(under; over): over as $over | under | _merge_appending($over);
