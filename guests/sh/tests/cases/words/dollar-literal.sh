echo $ "$" a$ $% "$ x" '$x' $"x"
