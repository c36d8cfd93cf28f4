(echo ${u?}) 2>/dev/null; echo $?
(echo ${u:?message}) 2>&1 | sed 's/.*: //'
