/**
 * Writes self-signed certificates without a library: `@peculiar/x509` would bring about a dozen packages into a daemon
 * that runs as root. Tests verify the output with Node and openssl.
 */
import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';
import { Fault } from '../kernel/fault.js';
import {
  bitString,
  explicit,
  implicit,
  integer,
  objectId,
  octetString,
  sequence,
  set,
  time,
  utf8String,
  yes,
} from './der.js';

export interface Certificate {
  readonly certDer: Buffer;
  readonly certPem: string;
}

/** Wide enough for any machine's clock, because only the key matters. */
const ALWAYS: Validity = { from: new Date('2000-01-01T00:00:00Z'), to: new Date('9999-12-31T23:59:59Z') };
const NAME = 'orch';

interface Validity {
  readonly from: Date;
  readonly to: Date;
}

/** Returns the certificate of the agent link, which holds only the key. The same key always gives the same bytes. */
export function selfSignedEd25519(privateKey: KeyObject): Certificate {
  if (privateKey.asymmetricKeyType !== 'ed25519') throw wrongKey(privateKey, 'Ed25519');
  const spki = spkiOf(privateKey);
  return assemble(privateKey, {
    algorithm: sequence(objectId('1.3.101.112')),
    serial: serialOf(spki),
    name: NAME,
    validity: ALWAYS,
    spki,
    extensions: [],
  });
}

interface ServerCertificateOptions {
  /** ECDSA P-256. */
  readonly privateKey: KeyObject;
  /** Host names; Unicode names are converted to ASCII. */
  readonly dnsNames: readonly string[];
  /** IPv4 and IPv6. */
  readonly addresses: readonly string[];
  readonly validity?: Validity;
  /** Positive, at most 20 bytes. The default is derived from the key, the names and the dates. */
  readonly serial?: Uint8Array;
}

/** Returns the PEM of a certificate for the API's TLS server. Throws `invalid_config` for an invalid name or address. */
export function selfSignedP256(options: ServerCertificateOptions): string {
  const { privateKey, validity = ALWAYS } = options;
  if (privateKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw wrongKey(privateKey, 'ECDSA P-256');
  const names = [...new Set(options.dnsNames.map(asciiName))];
  const alternatives = sequence(
    ...names.map((name) => implicit(2, Buffer.from(name, 'ascii'))),
    ...[...new Set(options.addresses)].map((address) => implicit(7, addressBytes(address))),
  );
  const spki = spkiOf(privateKey);
  return assemble(privateKey, {
    algorithm: sequence(objectId('1.2.840.10045.4.3.2')),
    serial: options.serial ?? serialOf(spki, alternatives, time(validity.from), time(validity.to)),
    name: names[0] && names[0].length <= 64 ? names[0] : NAME,
    validity,
    spki,
    extensions: serverExtensions(spki, alternatives),
  }).certPem;
}

interface Parts {
  readonly algorithm: Buffer;
  readonly serial: Uint8Array;
  readonly name: string;
  readonly validity: Validity;
  readonly spki: Buffer;
  readonly extensions: readonly Buffer[];
}

function assemble(privateKey: KeyObject, parts: Parts): Certificate {
  const name = sequence(set(sequence(objectId('2.5.4.3'), utf8String(parts.name))));
  const body = sequence(
    explicit(0, integer(2)),
    integer(parts.serial),
    parts.algorithm,
    name,
    sequence(time(parts.validity.from), time(parts.validity.to)),
    name,
    parts.spki,
    ...(parts.extensions.length > 0 ? [explicit(3, sequence(...parts.extensions))] : []),
  );
  const digest = privateKey.asymmetricKeyType === 'ed25519' ? null : 'sha256';
  const certDer = sequence(body, parts.algorithm, bitString(sign(digest, body, privateKey)));
  return { certDer, certPem: pemOf(certDer) };
}

function serverExtensions(spki: Buffer, alternatives: Buffer): readonly Buffer[] {
  const extension = (id: string, value: Buffer, critical = false) =>
    sequence(objectId(id), ...(critical ? [yes()] : []), octetString(value));
  const keyId = createHash('sha1').update(spki).digest();
  return [
    // Not a CA: trust in this certificate does not extend to anything its key signs.
    extension('2.5.29.19', sequence(), true),
    // digitalSignature
    extension('2.5.29.15', bitString(Buffer.from([0x80]), 7), true),
    // serverAuth
    extension('2.5.29.37', sequence(objectId('1.3.6.1.5.5.7.3.1'))),
    extension('2.5.29.14', octetString(keyId)),
    extension('2.5.29.17', alternatives),
  ];
}

const spkiOf = (key: KeyObject): Buffer => createPublicKey(key).export({ type: 'spki', format: 'der' });

/** Returns 16 bytes whose first bits are 0 and 1, so that the number is positive and has a fixed length. */
function serialOf(...parts: readonly Uint8Array[]): Buffer {
  const serial = createHash('sha256').update(Buffer.concat(parts)).digest().subarray(0, 16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  return serial;
}

function asciiName(name: string): string {
  const ascii = domainToASCII(name);
  if (ascii === '' || ascii.length > 253) throw new Fault('invalid_config', `${JSON.stringify(name)} is no host name`);
  return ascii;
}

function addressBytes(address: string): Buffer {
  const bytes = ipBytes(address);
  if (!bytes) throw new Fault('invalid_config', `${JSON.stringify(address)} is no IP address`);
  return bytes;
}

const wrongKey = (key: KeyObject, wanted: string): Fault =>
  new Fault('key_invalid', `a certificate needs an ${wanted} key, not ${key.asymmetricKeyType ?? key.type}`);

const pemOf = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`;

/** Returns the 4 or 16 bytes of an IP address without its zone (`%eth0`), or null for other text. */
export function ipBytes(address: string): Buffer | null {
  const text = address.replace(/%.*$/, '');
  if (isIPv4(text)) return Buffer.from(text.split('.').map(Number));
  return isIPv6(text) ? ipv6Bytes(text) : null;
}

function ipv6Bytes(text: string): Buffer {
  const [head = '', tail] = withoutDots(text).split('::');
  const left = groups(head);
  const right = tail === undefined ? [] : groups(tail);
  const zeros = new Array<string>(8 - left.length - right.length).fill('0');
  return Buffer.from([...left, ...zeros, ...right].map((group) => group.padStart(4, '0')).join(''), 'hex');
}

/** Replaces a dotted last part (`::ffff:192.0.2.1`) by two groups. */
const withoutDots = (text: string): string =>
  text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) => {
    const pair = (high: string, low: string) => (Number(high) * 256 + Number(low)).toString(16);
    return `${pair(a, b)}:${pair(c, d)}`;
  });

const groups = (text: string): readonly string[] => (text === '' ? [] : text.split(':'));
