set -eo pipefail; true | true; echo ok; false | true; echo never
