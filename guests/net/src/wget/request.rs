//! What wget asks a server for.

use super::code;
use super::fetch::{End, Session};
use super::names;
use super::options::Body as Upload;
use crate::http::url::Url;
use crate::http::wire::Wire;
use crate::http::{Error, base64};
use std::fs::File;
use wardian_abi as abi;

/// A request in the making.
pub struct Request<'a> {
    pub url: &'a Url,
    pub referer: Option<&'a str>,
    pub method: Option<&'a str>,
    pub body: Option<&'a Upload>,
}

impl Session<'_> {
    /// Returns how much of a file is there, for `-c`.
    pub(super) fn resume_from(&self, url: &Url) -> u64 {
        if !self.options.resume || self.options.spider {
            return 0;
        }
        let path = self.options.output.clone().unwrap_or_else(|| names::path_for(url, self.options, None));
        abi::stat(abi::Dir::CWD, &path, true).map_or(0, |stat| stat.size)
    }

    pub(super) fn request(
        &mut self,
        request: &Request<'_>,
        logged_in: bool,
        resume: u64,
    ) -> Result<(String, Vec<u8>), End> {
        let (url, options) = (request.url, self.options);
        let own = match (request.body.is_some(), options.spider) {
            (true, _) => "POST",
            (false, true) => "HEAD",
            _ => "GET",
        };
        let method = request.method.unwrap_or(own).to_owned();
        let mut headers: Vec<(String, Vec<u8>)> = Vec::new();
        let mut put = |name: &str, value: &[u8]| headers.push((name.to_owned(), value.to_vec()));
        put("Host", url.authority().as_bytes());
        if let Some(referer) = options.referer.as_deref().or(request.referer.map(str::as_bytes)) {
            put("Referer", referer);
        }
        if options.no_cache {
            put("Cache-Control", b"no-cache");
            put("Pragma", b"no-cache");
        }
        if resume > 0 {
            put("Range", format!("bytes={resume}-").as_bytes());
        }
        match &options.agent {
            Some(agent) if agent.is_empty() => {}
            Some(agent) => put("User-Agent", agent),
            None => put("User-Agent", b"Wget/1.21.3"),
        }
        put("Accept", b"*/*");
        put("Accept-Encoding", b"identity");
        let login =
            options.auth_at_once || logged_in || self.challenged.as_deref() == Some(url.authority().as_str());
        if let Some(login) = self.login(url).filter(|_| login) {
            put("Authorization", format!("Basic {}", base64::encode(login.as_bytes())).as_bytes());
        }
        put("Connection", if options.no_keep_alive { b"Close" } else { b"Keep-Alive" });
        if let Some(cookies) = self.jar.header(url, false).filter(|_| !options.no_cookies) {
            put("Cookie", cookies.as_bytes());
        }
        if let Some(length) = self.body_length(request)? {
            put("Content-Type", b"application/x-www-form-urlencoded");
            put("Content-Length", length.to_string().as_bytes());
        }
        for header in &options.headers {
            let at = header.iter().position(|&byte| byte == b':').unwrap_or(header.len());
            let (name, value) =
                (String::from_utf8_lossy(&header[..at]), header.get(at + 1..).unwrap_or_default());
            match headers.iter_mut().find(|(key, _)| key.eq_ignore_ascii_case(&name)) {
                Some((_, old)) => *old = value.trim_ascii().to_vec(),
                None => headers.push((name.into_owned(), value.trim_ascii().to_vec())),
            }
        }
        // A login that a server asked for goes last, as wget has it.
        headers.sort_by_key(|(name, _)| name == "Authorization" && !options.auth_at_once);
        let mut bytes = format!("{method} {} HTTP/1.1\r\n", url.target()).into_bytes();
        for (name, value) in headers {
            bytes.extend_from_slice(format!("{name}: ").as_bytes());
            bytes.extend_from_slice(&value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        Ok((method, bytes))
    }

    pub(super) fn login(&self, url: &Url) -> Option<String> {
        let user = url.user.clone().or(self.options.user.clone())?;
        let password = url.password.clone().filter(|text| !text.is_empty()).or(self.options.password.clone());
        Some(format!("{user}:{}", password.unwrap_or_default()))
    }

    pub(super) fn body_length(&self, request: &Request<'_>) -> Result<Option<u64>, End> {
        match request.body {
            None => Ok(None),
            Some(Upload::Data(data)) => Ok(Some(data.len() as u64)),
            Some(Upload::File(file)) => match std::fs::metadata(toolkit::files::path(file)) {
                Ok(metadata) => Ok(Some(metadata.len())),
                Err(error) => {
                    let name = String::from_utf8_lossy(file);
                    self.log
                        .always(&format!("BODY data file ‘{name}’ missing: {}\n", abi::Errno::from(error)));
                    Err(End::Failed(code::FILE))
                }
            },
        }
    }

    pub(super) fn send_body(&self, wire: &mut Wire, request: &Request<'_>) -> Result<(), Error> {
        match request.body {
            None => Ok(()),
            Some(Upload::Data(data)) => wire.send(data),
            Some(Upload::File(file)) => {
                let unreadable = |error: std::io::Error| Error::Send(abi::Errno::from(error));
                let mut file = File::open(toolkit::files::path(file)).map_err(unreadable)?;
                let mut buffer = vec![0; 16 * 1024];
                loop {
                    match std::io::Read::read(&mut file, &mut buffer).map_err(unreadable)? {
                        0 => return Ok(()),
                        count => wire.send(&buffer[..count])?,
                    }
                }
            }
        }
    }
}
