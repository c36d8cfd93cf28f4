x=$(echo $(echo $(echo $(echo deep)))); echo $x; if true; then if true; then for i in 1; do while true; do case a in a) { ( echo inner ); };; esac; break; done; done; fi; fi
