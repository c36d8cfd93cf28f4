echo ${nosuch?gone}
echo never
