printf '[a]\nk=1\n# c\n[b]\nk = two words\n' > c.ini
section=; while IFS= read -r line || [[ -n $line ]]; do [[ $line =~ ^[[:space:]]*(#|$) ]] && continue; if [[ $line =~ ^\[(.+)\]$ ]]; then section=${BASH_REMATCH[1]}; elif [[ $line =~ ^([^=]+)=(.*)$ ]]; then k=${BASH_REMATCH[1]}; v=${BASH_REMATCH[2]}; k=${k%% }; v=${v## }; echo "$section.$k=$v"; fi; done < c.ini
