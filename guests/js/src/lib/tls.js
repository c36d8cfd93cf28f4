// tls: connections whose TLS the sandbox's gateway speaks. A record asks for it, a record answers, plain bytes follow.
(function (exports, require, module, native) {
  'use strict';

  const net = require('net');
  const { unsupported, coded } = require('_errors');
  const MARK = Buffer.from([0, 0x57, 0x54, 0x4c, 0x53, 1]);
  const LONGEST = 65536;

  // The certificates of a chain as node shows them, without what is inside of them.
  function shown(chain, detailed) {
    const { createHash } = require('crypto');
    const print = (name, raw) => createHash(name).update(raw).digest('hex').toUpperCase().replace(/..(?=.)/g, '$&:');
    const all = chain.map((raw) => ({ raw, fingerprint: print('sha1', raw), fingerprint256: print('sha256', raw), fingerprint512: print('sha512', raw) }));
    if (detailed) all.forEach((one, at) => { if (all[at + 1]) one.issuerCertificate = all[at + 1]; });
    return all[0] ?? {};
  }

  exports.connect = (...args) => {
    const callback = typeof args[args.length - 1] === 'function' ? args.pop() : null;
    let [options] = args;
    if (typeof options !== 'object') options = { port: Number(options), host: typeof args[1] === 'string' ? args[1] : undefined, ...(typeof args[args.length - 1] === 'object' ? args[args.length - 1] : {}) };
    for (const name of ['cert', 'key', 'pfx', 'ca']) if (options[name] !== undefined) throw unsupported(`tls option ${name}`, 'is not available in this sandbox: the gateway speaks TLS');
    const host = options.servername ?? options.host ?? 'localhost';
    const socket = options.socket ?? net.connect({ port: options.port, host: options.host, timeout: options.timeout });
    socket.encrypted = true;
    socket.authorized = false;
    socket.authorizationError = null;
    socket.getPeerCertificate = (detailed) => shown(socket._tlsCertificates ?? [], detailed);
    socket.getProtocol = () => socket._tlsVersion ?? null;
    socket.getCipher = () => ({ name: socket._tlsCipher });
    if (callback) socket.once('secureConnect', callback);
    // What is written before TLS is agreed must wait.
    const { write } = socket;
    const ask = () => {
      const text = `server-name ${host}\n${options.rejectUnauthorized === false ? 'verify no\n' : ''}${options.ALPNProtocols === null ? '' : 'alpn http/1.1\n'}`;
      const length = Buffer.alloc(4);
      length.writeUInt32BE(Buffer.byteLength(text));
      Object.getPrototypeOf(socket)._write.call(socket, Buffer.concat([MARK, length, Buffer.from(text)]), 'buffer', (error) => { if (error) socket.destroy(error); });
      let got = Buffer.alloc(0);
      const take = () => {
        const chunk = socket.read();
        if (chunk === null) return;
        got = Buffer.concat([got, chunk]);
        if (got.length < 10) return;
        const size = got.readUInt32BE(6);
        if (!got.subarray(0, 6).equals(MARK) || size > LONGEST) {
          socket.off('readable', take);
          socket.destroy(coded(Error, 'ERR_TLS_HANDSHAKE', `${host} did not answer as the sandbox's gateway does; TLS works only through the gateway`));
          return;
        }
        if (got.length < 10 + size) return;
        socket.off('readable', take);
        const lines = got.subarray(10, 10 + size).toString().split('\n').map((line) => [line.split(' ')[0], line.slice(line.indexOf(' ') + 1)]);
        const rest = got.subarray(10 + size);
        const field = (name) => lines.find(([key]) => key === name)?.[1];
        if (lines[0][0] !== 'ok') {
          const error = new Error(field('message') ?? `TLS was refused: ${lines[0][1]}`);
          error.code = { certificate: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', name: 'ERR_TLS_CERT_ALTNAME_INVALID' }[lines[0][1]] ?? 'ERR_TLS_REFUSED';
          socket.destroy(error);
          return;
        }
        socket.authorized = options.rejectUnauthorized !== false;
        socket._tlsVersion = field('version');
        socket._tlsCipher = field('cipher');
        socket._tlsCertificates = lines.filter(([key]) => key === 'certificate').map(([, text]) => Buffer.from(text, 'base64'));
        socket.alpnProtocol = field('alpn') ?? false;
        if (rest.length) socket.unshift(rest);
        socket._secured = true;
        socket.uncork();
        socket.emit('secureConnect');
      };
      socket.on('readable', take);
    };
    void write;
    socket.cork();
    if (socket.connecting) socket.once('connect', ask);
    else ask();
    return socket;
  };
  exports.TLSSocket = net.Socket;
  exports.createServer = () => { throw unsupported('tls.createServer', 'is not available in this sandbox: the gateway speaks TLS for those who connect outwards'); };
  exports.createSecureContext = (options) => ({ context: options });
  exports.checkServerIdentity = () => undefined;
  exports.rootCertificates = [];
  exports.DEFAULT_MIN_VERSION = 'TLSv1.2';
  exports.DEFAULT_MAX_VERSION = 'TLSv1.3';
  exports.getCiphers = () => [];
})
