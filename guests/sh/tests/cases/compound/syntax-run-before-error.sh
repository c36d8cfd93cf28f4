echo before
if
echo after )
