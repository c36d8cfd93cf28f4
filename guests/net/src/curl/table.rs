//! The options there are: those that work, and curl's others with the reason why they do not.

/// What an option takes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Takes {
    /// Nothing; `--no-` before it switches it off.
    Nothing,
    Value,
}

/// Options that work: names, with `=` if they take a value, and a letter before a comma.
const HAVE: &str = "
    basic c,cookie-jar= b,cookie= C,continue-at= compressed connect-timeout= create-dirs d,data= data-ascii=
    data-binary= data-raw= data-urlencode= q,disable D,dump-header= f,fail fail-early fail-with-body F,form=
    form-string= G,get g,globoff I,head H,header= h,help 0,http1.0 http1.1 ignore-content-length i,include
    k,insecure 4,ipv4 6,ipv6 json= j,junk-session-cookies limit-rate= L,location location-trusted max-filesize=
    max-redirs= m,max-time= :,next N,buffer clobber keepalive npn alpn sessionid progress-meter noproxy=
    oauth2-bearer= o,output= output-dir= Z,parallel parallel-immediate parallel-max= path-as-is post301 post302
    post303 #,progress-bar proto= proto-default= proto-redir= r,range= e,referer= J,remote-header-name O,remote-name
    remote-name-all R,remote-time remove-on-error X,request= request-target= retry= retry-all-errors
    retry-connrefused retry-delay= retry-max-time= S,show-error s,silent Y,speed-limit= y,speed-time= stderr=
    styled-output tcp-nodelay z,time-cond= 1,tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3 unix-socket= T,upload-file= url=
    url-query= u,user= A,user-agent= v,verbose V,version w,write-out= K,config= expect100-timeout= etag-save=
    etag-compare= disallow-username-in-url suppress-connect-headers";

/// Options of curl that do not work here, by reason.
const REFUSED: &[(&str, &str)] = &[
    (
        "proxies are a matter of the sandbox's gateway",
        "preproxy= x,proxy= proxy-anyauth proxy-basic proxy-cacert= proxy-capath= proxy-cert= proxy-cert-type=
         proxy-ciphers= proxy-crlfile= proxy-digest proxy-header= proxy-insecure proxy-key= proxy-key-type=
         proxy-negotiate proxy-ntlm proxy-pass= proxy-pinnedpubkey= proxy-service-name= proxy-ssl-allow-beast
         proxy-ssl-auto-client-cert proxy-tls13-ciphers= proxy-tlsauthtype= proxy-tlspassword= proxy-tlsuser=
         proxy-tlsv1 U,proxy-user= proxy1.0= p,proxytunnel socks4= socks4a= socks5= socks5-basic socks5-gssapi
         socks5-gssapi-nec socks5-gssapi-service= socks5-hostname= haproxy-protocol",
    ),
    (
        "names are resolved by the sandbox's gateway",
        "resolve= connect-to= dns-interface= dns-ipv4-addr= dns-ipv6-addr= dns-servers= doh-cert-status doh-insecure
         doh-url= happy-eyeballs-timeout-ms=",
    ),
    (
        "TLS is a matter of the sandbox's gateway",
        "cacert= capath= E,cert= cert-status cert-type= ciphers= crlfile= curves= egd-file= engine= false-start key=
         key-type= pass= pinnedpubkey= random-file= ssl ssl-allow-beast ssl-auto-client-cert ssl-no-revoke ssl-reqd
         ssl-revoke-best-effort 2,sslv2 3,sslv3 tls-max= tls13-ciphers= tlsauthtype= tlspassword= tlsuser=",
    ),
    (
        "only http, https and file are supported",
        "a,append compressed-ssh disable-eprt disable-epsv ftp-account= ftp-alternative-to-user= ftp-create-dirs
         ftp-method= ftp-pasv P,ftp-port= ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-ccc-mode= ftp-ssl-control
         hostpubmd5= hostpubsha256= krb= l,list-only mail-auth= mail-from= mail-rcpt= mail-rcpt-allowfails pubkey=
         Q,quote= sasl-authzid= sasl-ir t,telnet-option= tftp-blksize= tftp-no-options B,use-ascii login-options=",
    ),
    (
        "only Basic and Bearer authentication are supported",
        "anyauth aws-sigv4= delegation= digest negotiate ntlm ntlm-wb service-name=",
    ),
    ("logins are not read from files; use --user", "n,netrc netrc-file= netrc-optional"),
    ("only HTTP/1.1 and HTTP/1.0 are supported", "http0.9 http2 http2-prior-knowledge http3 http3-only"),
    ("there is one network interface, without settings", "interface= local-port= keepalive-time= tcp-fastopen"),
    (
        "not supported",
        "abstract-unix-socket= alt-svc= create-file-mode= crlf form-escape hsts= libcurl= M,manual metalink
         rate= raw tr-encoding trace= trace-ascii= trace-time xattr",
    ),
];

/// An option: its name, what it takes, and the reason if it is refused.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub name: &'static str,
    pub letter: Option<char>,
    pub takes: Takes,
    pub refused: Option<&'static str>,
}

fn listed(words: &'static str, refused: Option<&'static str>) -> impl Iterator<Item = Known> {
    words.split_whitespace().map(move |word| {
        let (letter, name) = match word.split_once(',') {
            Some((letter, name)) => (letter.chars().next(), name),
            None => (None, word),
        };
        match name.strip_suffix('=') {
            Some(name) => Known { name, letter, takes: Takes::Value, refused },
            None => Known { name, letter, takes: Takes::Nothing, refused },
        }
    })
}

fn all() -> impl Iterator<Item = Known> {
    let refused = REFUSED.iter().flat_map(|(reason, words)| listed(words, Some(reason)));
    listed(HAVE, None).chain(refused)
}

/// The option of a letter.
pub fn by_letter(letter: char) -> Option<Known> {
    all().find(|known| known.letter == Some(letter))
}

/// The option of a name or of an unambiguous beginning of one; an error if there are several.
pub fn by_name(name: &str) -> Result<Option<Known>, ()> {
    let fitting: Vec<Known> = all().filter(|known| known.name.starts_with(name)).collect();
    if let Some(exact) = fitting.iter().find(|known| known.name == name) {
        return Ok(Some(*exact));
    }
    match fitting[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `curl --help all` of curl 7.88 lists, without `--no-`.
    const CURL: &str = include_str!("../../tests/curl-options");

    #[test]
    fn every_option_of_curl_is_known() {
        for line in CURL.lines() {
            let (name, takes) = match line.strip_suffix('=') {
                Some(name) => (name, Takes::Value),
                None => (line, Takes::Nothing),
            };
            let found: Vec<Known> = all().filter(|known| known.name == name).collect();
            assert_eq!(found.len(), 1, "{name}");
            assert_eq!(found[0].takes, takes, "{name}");
        }
    }
}
