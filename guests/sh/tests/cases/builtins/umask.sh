umask 022; umask; umask -S; umask u=rwx,g=rx,o=; umask; umask 077; touch f; ls -l f | cut -c1-10; umask -p; umask 999 2>/dev/null; echo $?; umask g+w; umask
