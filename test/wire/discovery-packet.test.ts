/** Discovery packets: what is one, and that each announcement has one spelling. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import {
  type Announcement,
  DISCOVERY,
  encodePacket,
  packetDecoder,
  type SignedAnnouncement,
  signedBytes,
} from '../../src/wire/discovery-packet.js';

interface Case {
  readonly name: string;
  readonly change?: object;
  readonly without?: string;
  readonly text?: string;
  readonly packet: boolean;
}

const cases = JSON.parse(
  readFileSync(fileURLToPath(new URL('discovery-cases.json', import.meta.url)), 'utf8'),
) as readonly Case[];

const good = {
  magic: 'orch-discovery',
  version: 1,
  public_key: 'ab'.repeat(32),
  host: '10.0.0.1',
  port: 4747,
  timestamp: 1_740_830_400_000,
  signature: 'cd'.repeat(64),
};

const decode = packetDecoder();

const textOf = ({ change, without, text }: Case): string =>
  text ?? JSON.stringify({ ...good, ...change }, (key, value) => (key === without ? undefined : value));

const hexOf = (bytes: number) => fc.stringMatching(new RegExp(`^[0-9a-f]{${bytes * 2}}$`));
const announcement = fc.record({
  publicKey: hexOf(32) as fc.Arbitrary<PublicKeyHex>,
  host: fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain()).filter((host) => host.length < 150),
  port: fc.integer({ min: 1, max: 65_535 }),
  timestamp: fc.maxSafeNat(),
});
const signed: fc.Arbitrary<SignedAnnouncement> = fc
  .tuple(announcement, hexOf(64))
  .map(([one, signature]) => ({ ...one, signature }));

describe('a datagram', () => {
  it.each(cases)('that $name', (one) => {
    const decoded = decode(Buffer.from(textOf(one)));
    if (!one.packet) return expect(decoded).toBeNull();
    const { host, port, timestamp, signature } = { ...good, ...one.change };
    expect(decoded).toEqual({ publicKey: good.public_key, host, port, timestamp, signature });
  });

  it('is no packet in another order, with white space, with a member twice, or beyond its limit', () => {
    const text = JSON.stringify(good);
    expect(decode(Buffer.from(text))).not.toBeNull();
    const { magic, ...rest } = good;
    for (const other of [
      JSON.stringify({ ...rest, magic }),
      JSON.stringify(good, null, 1),
      `${text}\n`,
      ` ${text}`,
      `${text}\0`,
      text.replace('{', '{"port":4747,'),
      text.replace('4747', '4747.0'),
      text.replace('orch-discovery', 'orch\\u002ddiscovery'),
      text.replace('"host":"10.0.0.1"', `"host":"${'a'.repeat(253)}"`),
    ]) {
      expect(decode(Buffer.from(other)), other).toBeNull();
    }
  });
});

describe('an announcement', () => {
  it('is read as it was written, and fits', () => {
    fc.assert(
      fc.property(signed, (one) => {
        const packet = encodePacket(one);
        expect(packet.length).toBeLessThanOrEqual(DISCOVERY.maxBytes);
        expect(decode(packet)).toEqual(one);
      }),
    );
  });

  it('has one spelling: a changed datagram is another announcement, or none', () => {
    fc.assert(
      fc.property(signed, fc.nat(), fc.integer({ min: 0, max: 255 }), (one, place, byte) => {
        const packet = encodePacket(one);
        const changed = Buffer.from(packet);
        changed[place % packet.length] = byte;
        if (!changed.equals(packet)) expect(decode(changed)).not.toEqual(one);
      }),
    );
  });

  it('is signed as a whole: two that differ are signed over different bytes', () => {
    fc.assert(
      fc.property(announcement, announcement, (one, other) => {
        const isSame = JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
        expect(signedBytes(one).equals(signedBytes(other))).toBe(isSame);
      }),
    );
    expect(signedBytes({ ...base, host: 'a', port: 11 })).not.toEqual(signedBytes({ ...base, host: 'a1', port: 1 }));
  });

  it('is never read out of noise', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
        expect(decode(bytes)).toBeNull();
      }),
    );
  });
});

const base: Announcement = { publicKey: good.public_key as PublicKeyHex, host: 'a', port: 1, timestamp: 1 };
const sorted = ({ publicKey, host, port, timestamp }: Announcement) => [publicKey, host, port, timestamp];
