/** Addresses and networks, against what Node and the platform's own list of networks say. */
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { containsAddress, parseIpAddress, parseIpNetwork, sameAddress } from '../../src/kernel/ip-network.js';

const addresses = fc.oneof(fc.ipV4(), fc.ipV6());

describe('an address', () => {
  it('is what Node takes for one', () => {
    const texts = fc.oneof(addresses, fc.stringMatching(/^[0-9a-f:.]{0,24}$/), fc.string());
    fc.assert(
      fc.property(texts, (text) => {
        if (text.includes('%')) return;
        expect(parseIpAddress(text) !== null).toBe(isIP(text) !== 0);
      }),
      { numRuns: 2000 },
    );
  });

  it('is the same in every spelling', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const canonical = new URL(`http://[${text}]/`).hostname.slice(1, -1);
        const [one, other] = [parseIpAddress(text), parseIpAddress(canonical)];
        expect(one !== null && other !== null && sameAddress(one, other)).toBe(true);
      }),
    );
    expect(parseIpAddress('::ffff:192.0.2.1')).toEqual(parseIpAddress('192.0.2.1'));
    expect(parseIpAddress('::FFFF:c000:201')).toEqual(parseIpAddress('192.0.2.1'));
    expect(parseIpAddress('fe80::1%eth0')).toEqual(parseIpAddress('fe80::1'));
  });

  it.each(['', '1.2.3', '1.2.3.4.5', '01.2.3.4', '256.0.0.1', ':::', '1::2::3', '1:2:3:4:5:6:7', '::1.2.3', 'x'])(
    '%j is none',
    (text) => expect(parseIpAddress(text)).toBeNull(),
  );
});

describe('a network', () => {
  it('holds the addresses that Node says it holds', () => {
    const cases = fc.tuple(addresses, addresses, fc.nat(128));
    fc.assert(
      fc.property(cases, ([base, address, length]) => {
        const prefix = isIPv4(base) ? length % 33 : length;
        const list = new BlockList();
        list.addSubnet(base, prefix, isIPv6(base) ? 'ipv6' : 'ipv4');
        const [network, parsed] = [parseIpNetwork(`${base}/${prefix}`), parseIpAddress(address)];
        if (network === null || parsed === null) throw new Error('neither is to be refused');
        if (isIPv6(base) !== isIPv6(address)) return;
        expect(containsAddress(network, parsed)).toBe(list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'));
      }),
      { numRuns: 2000 },
    );
  });

  it('of one address needs no length, and one inside IPv6 is that of IPv4', () => {
    expect(parseIpNetwork('192.0.2.1')).toEqual(parseIpNetwork('192.0.2.1/32'));
    expect(parseIpNetwork('::ffff:10.0.0.0/104')).toEqual(parseIpNetwork('10.0.0.0/8'));
    expect(parseIpNetwork(' fd00::/8 ')).toEqual(parseIpNetwork('fd00::/8'));
  });

  it.each(['', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/x', '/8', '10.0.0.0/8/8', 'home'])(
    '%j is none',
    (text) => expect(parseIpNetwork(text)).toBeNull(),
  );
});
