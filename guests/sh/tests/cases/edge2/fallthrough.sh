case b in a) echo a;& b) echo b;& c) echo c;; d) echo d;; esac; case x in *) echo 1;;& x) echo 2;;& y) echo 3;; esac
