/** What the key types of OpenSSH are, in words for people whose key we cannot use. */

export const SSH_ED25519 = 'ssh-ed25519';

const NAMES: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/-cert-v01@openssh\.com$/, 'an OpenSSH certificate'],
  [/^sk-/, 'held by a security key, whose signatures differ'],
  [/^ssh-rsa$/, 'an RSA key'],
  [/^ssh-dss$/, 'a DSA key'],
  [/^ecdsa-sha2-/, 'an ECDSA key'],
];

/** What a key of that type is, as the rest of "is …"; null for a word that is no key type at all. */
export function describeSshKeyType(type: string): string | null {
  if (type === SSH_ED25519) return 'an Ed25519 key';
  return NAMES.find(([pattern]) => pattern.test(type))?.[1] ?? null;
}
