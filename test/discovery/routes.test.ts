/** Which ways discovery packets take, and the host that each names. */
import { describe, expect, it } from 'vitest';
import { parseDiscoveryTarget } from '../../daemon/discovery/discovery.js';
import {
  type AgentPlace,
  broadcastRoutes,
  hostOf,
  type InterfaceAddress,
  isUnicast,
} from '../../daemon/discovery/route-of-packet.js';
import { isFault } from '../../src/kernel/fault.js';

const four = (name: string, address: string, netmask: string): InterfaceAddress => ({
  name,
  family: 'IPv4',
  address,
  netmask,
});
const six = (name: string, address: string): InterfaceAddress => ({ name, family: 'IPv6', address, netmask: 'ffff::' });

const machine: readonly InterfaceAddress[] = [
  four('lo', '127.0.0.1', '255.0.0.0'),
  six('lo', '::1'),
  four('eth0', '10.0.0.7', '255.255.255.0'),
  four('eth0', '10.9.0.7', '255.255.252.0'),
  six('eth0', 'fe80::7'),
  six('eth0', '2001:db8::7'),
  six('wlan0', 'fe80::8'),
  four('tun0', '10.8.0.2', '255.255.255.255'),
  four('ptp0', '10.8.1.2', '255.255.255.254'),
];

const routes = (listening: string, advertised = '') =>
  broadcastRoutes(machine, { listening, advertised }).map(({ from, host, names }) => `${from} to ${host}: ${names}`);

describe('a broadcast', () => {
  it('goes to every network, and names the address that it comes from', () => {
    expect(routes('::')).toEqual([
      '127.0.0.1 to 127.255.255.255: 127.0.0.1',
      '10.0.0.7 to 10.0.0.255: 10.0.0.7',
      '10.9.0.7 to 10.9.3.255: 10.9.0.7',
      'eth0 to ff02::1%eth0: 2001:db8::7',
      'wlan0 to ff02::1%wlan0: fe80::8',
    ]);
  });

  it('names an IPv4 address where the agent port listens on IPv4 alone', () => {
    expect(routes('0.0.0.0')).toEqual([
      '127.0.0.1 to 127.255.255.255: 127.0.0.1',
      '10.0.0.7 to 10.0.0.255: 10.0.0.7',
      '10.9.0.7 to 10.9.3.255: 10.9.0.7',
      'eth0 to ff02::1%eth0: 10.0.0.7',
    ]);
  });

  it('stays on the interface whose address the agent port listens on', () => {
    expect(routes('10.0.0.7')).toEqual([
      '10.0.0.7 to 10.0.0.255: 10.0.0.7',
      '10.9.0.7 to 10.9.3.255: 10.0.0.7',
      'eth0 to ff02::1%eth0: 10.0.0.7',
    ]);
    expect(routes('127.0.0.1')).toEqual(['127.0.0.1 to 127.255.255.255: 127.0.0.1']);
    expect(routes('192.0.2.1')).toEqual([]);
  });

  it('names what is advertised everywhere', () => {
    const all = routes('127.0.0.1', 'orch.example.org');
    expect(all).toHaveLength(5);
    for (const route of all) expect(route).toMatch(/: orch\.example\.org$/);
  });
});

describe('a packet to one agent', () => {
  it.each<[string, Partial<AgentPlace>, string, string | null]>([
    ['everywhere', { listening: '0.0.0.0' }, '10.0.0.7', '10.0.0.7'],
    ['IPv4', { listening: '0.0.0.0' }, '2001:db8::7', null],
    ['both families', { listening: '::' }, '2001:db8::7', '2001:db8::7'],
    ['both families', { listening: '::' }, 'fe80::7%eth0', 'fe80::7'],
    ['this machine', { listening: '127.0.0.1' }, '10.0.0.7', null],
    ['this machine', { listening: '127.0.0.1' }, '127.0.0.1', '127.0.0.1'],
    ['one address', { listening: '10.0.0.7' }, '10.9.0.7', '10.0.0.7'],
    ['a name for it', { listening: '127.0.0.1', advertised: 'orch' }, '10.0.0.7', 'orch'],
  ])('of a port that listens on %s (%o), from %s, names %s', (_what, place, from, host) => {
    expect(hostOf({ listening: '::', advertised: '', ...place }, from)).toBe(host);
  });

  it.each([
    ['10.0.0.7', true],
    ['127.0.0.1', true],
    ['2001:db8::7', true],
    ['fe80::7%eth0', true],
    ['255.255.255.255', false],
    ['224.0.0.1', false],
    ['::ffff:224.0.0.1', false],
    ['240.0.0.1', false],
    ['0.0.0.0', false],
    ['ff02::1', false],
    ['ff05::2%eth0', false],
    ['::', false],
    ['orch', false],
  ])('%s is one machine: %s', (address, is) => expect(isUnicast(address)).toBe(is));

  it.each([
    ['10.0.0.7:4747', '10.0.0.7', 4747],
    ['web-01.example.org:1', 'web-01.example.org', 1],
    ['[2001:db8::7]:65535', '2001:db8::7', 65_535],
    ['[fe80::7%eth0]:4747', 'fe80::7%eth0', 4747],
  ])('%s is a target', (text, host, port) => expect(parseDiscoveryTarget(text)).toEqual({ host, port }));

  it.each([
    '10.0.0.7',
    '10.0.0.7:',
    '10.0.0.7:0',
    '10.0.0.7:65536',
    ':4747',
    '2001:db8::7:4747',
    '[2001:db8::7]',
    '[2001:db8]:4747',
    '[10.0.0.7]:4747',
    'http://10.0.0.7:4747',
    'a b:4747',
    'user@host:4747',
    '10.0.0.7:4747/x',
    '10.0.0.7:47a',
    'x\n:1',
  ])('%j is none', (text) => {
    try {
      parseDiscoveryTarget(text);
    } catch (error) {
      if (isFault(error, 'invalid_body')) return expect(error.errors).toMatchObject([{ path: '/target' }]);
    }
    throw new Error('it was taken');
  });
});
