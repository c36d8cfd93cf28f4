x=$'\xff\xfe'; printf %s "$x" | od -An -tx1; echo ${#x}
printf '\xff\n' > bin; read -r y < bin; printf %s "$y" | od -An -tx1
