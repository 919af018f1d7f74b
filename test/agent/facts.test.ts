import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { arch, cpus, hostname, type NetworkInterfaceInfo, release, tmpdir, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseOsRelease, readFacts } from '../../src/agent/facts.js';
import { PartedAttributesSchema } from '../../src/kernel/facts.js';
import { validator } from '../../src/kernel/validator.js';
import { ATTRIBUTE_NAMES, knownAttributes } from '../../src/language/known-attributes.js';
import { AttributesSchema } from '../../src/wire/messages.js';

describe('the facts of this machine', () => {
  it('are what the system says, in a form that the link takes', () => {
    const { attributes: facts } = readFacts();
    expect(validator(AttributesSchema).problems(facts)).toEqual([]);
    expect(facts).toMatchObject({
      hostname: hostname(),
      kernel: release(),
      cpus: String(cpus().length),
      memory_bytes: String(totalmem()),
    });
    if (arch() === 'x64') expect(facts.arch).toBe('x86_64');
    if (process.platform === 'linux') expect(facts.platform).toBe('linux');
    expect(readFacts({ hostname: 'given' }).attributes).toMatchObject({ hostname: 'given' });
    expect(readFacts({ hostname: 'x'.repeat(300) }).attributes.hostname).toHaveLength(256);
  });
});

describe('the facts of a machine with other files', () => {
  const root = mkdtempSync(join(tmpdir(), 'orch-root-'));
  afterAll(() => rmSync(root, { recursive: true }));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const link = (path: string, target: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    symlinkSync(target, join(root, path));
  };
  const address = (own: string, family: 'IPv4' | 'IPv6', mac = '52:54:00:12:34:56', internal = false) =>
    ({ address: own, family, mac, internal, netmask: '', cidr: null, scopeid: 0 }) as NetworkInterfaceInfo;
  const interfaces = () => ({
    lo: [address('127.0.0.1', 'IPv4', '00:00:00:00:00:00', true)],
    veth1: [address('fe80::1', 'IPv6')],
    eth0: [
      address('192.0.2.7', 'IPv4'),
      address('2001:db8::7', 'IPv6'),
      address('2001:db8::dead', 'IPv6'),
      address('fe80::2', 'IPv6'),
    ],
    'eth0.100': [address('198.51.100.1', 'IPv4')],
  });
  const read = (hostname = 'box') =>
    readFacts({
      root,
      hostname,
      interfaces,
      sizesOf: (path) => ({ total: 10 * 1024 ** 3, free: path === '/' ? 1024 ** 2 : 0 }),
    });

  it('are missing where there are no files', () => {
    const { attributes, parts } = readFacts({ root: '/nonexistent', hostname: 'box', interfaces: () => ({}) });
    expect(attributes).toMatchObject({ hostname: 'box', timezone: 'UTC', virtualization: 'none' });
    expect(attributes).not.toHaveProperty('fqdn');
    expect(attributes).not.toHaveProperty('default_interface');
    expect(parts).toEqual({ interfaces: {}, disks: {}, mounts: [] });
  });

  it('are the addresses, routes, names, disks, mounts, zone and kind of machine', () => {
    write('/proc/net/if_inet6', '20010db800000000000000000000dead 02 40 00 01     eth0\n');
    write(
      '/proc/net/route',
      'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n' +
        'eth1\t00000000\t0102A8C0\t0003\t0\t0\t600\t00000000\n' +
        'eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\n' +
        'eth0\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\n',
    );
    write('/etc/hosts', '127.0.0.1 localhost\n# 127.0.1.1 box.wrong.example box\n127.0.1.1 box.example.net box\n');
    link('/etc/localtime', '/usr/share/zoneinfo/Europe/Berlin');
    write('/proc/stat', 'cpu 1 2\nbtime 1700000000\n');
    write('/sys/devices/pci/sda/size', '2097152\n');
    write('/sys/devices/pci/sda/queue/rotational', '0\n');
    write('/sys/devices/pci/sda/device/model', 'QEMU HARDDISK   \n');
    link('/sys/block/sda', '../devices/pci/sda');
    write('/sys/devices/virtual/block/loop0/size', '100\n');
    link('/sys/block/loop0', '../devices/virtual/block/loop0');
    write('/sys/devices/pci/sr0/size', '100\n');
    link('/sys/block/sr0', '../devices/pci/sr0');
    write(
      '/proc/self/mounts',
      '/dev/sda1 / ext4 rw 0 0\nproc /proc proc rw 0 0\ntmpfs /run tmpfs rw 0 0\n' +
        'nas:/x /mnt/my\\040disk nfs4 rw 0 0\n/dev/loop0 /snap/x squashfs ro 0 0\noverlay /var/lib/docker/x overlay rw 0 0\n',
    );
    write('/sys/class/dmi/id/sys_vendor', 'QEMU\n');
    write('/sys/devices/system/clocksource/clocksource0/available_clocksource', 'kvm-clock tsc\n');
    const { attributes, parts, volatile } = read();
    expect(attributes).toMatchObject({
      fqdn: 'box.example.net',
      default_interface: 'eth0',
      default_gateway: '192.0.2.1',
      default_ipv4: '192.0.2.7',
      default_ipv6: '2001:db8::7',
      timezone: 'Europe/Berlin',
      virtualization: 'kvm',
    });
    const mac = '52:54:00:12:34:56';
    expect(parts).toEqual({
      interfaces: {
        eth0: { mac, ipv4: ['192.0.2.7'], ipv6: ['2001:db8::7'] },
        'eth0.100': { mac, ipv4: ['198.51.100.1'], ipv6: [] },
      },
      disks: { sda: { size_mb: 1024, model: 'QEMU HARDDISK', rotational: false } },
      mounts: [
        { path: '/', device: '/dev/sda1', type: 'ext4', size_mb: 10_240 },
        { path: '/mnt/my disk', device: 'nas:/x', type: 'nfs4' },
      ],
    });
    expect(volatile).toEqual({ boot_time: 1_700_000_000, free_mb: { '/': 1 } });
    expect(validator(PartedAttributesSchema).problems(parts)).toEqual([]);
    expect(validator(AttributesSchema).problems(attributes)).toEqual([]);
  });

  it('take the name with a domain first, then /etc/hosts, then resolv.conf', () => {
    expect(read('box.here.example').attributes.fqdn).toBe('box.here.example');
    expect(read('other').attributes).not.toHaveProperty('fqdn');
    write('/etc/resolv.conf', 'nameserver 192.0.2.53\nsearch lan.example other.example\n');
    expect(read('other').attributes.fqdn).toBe('other.lan.example');
  });

  it('have the types that expressions expect', () => {
    const { attributes, parts } = read();
    const known = knownAttributes(attributes, parts);
    expect(typeof known.memory_mb).toBe('number');
    expect(typeof known.processors).toBe('number');
    expect(typeof known.cpus).toBe('string');
    for (const name of Object.keys(known)) expect(ATTRIBUTE_NAMES).toContain(name);
  });

  it.each([
    ['/run/systemd/container', 'lxc\n', 'lxc'],
    ['/run/systemd/container', '\u001b[31m', 'container-other'],
    ['/sys/class/dmi/id/product_name', 'VMware Virtual Platform', 'vmware'],
    ['/sys/class/dmi/id/sys_vendor', 'Amazon EC2', 'amazon'],
    ['/proc/cpuinfo', 'flags\t\t: fpu hypervisor sse', 'vm-other'],
    ['/proc/sys/kernel/osrelease', '5.15-microsoft-standard-WSL2', 'wsl'],
    ['/.dockerenv', '', 'docker'],
  ])('tell by %s (%j) what the machine runs in', (path, text, expected) => {
    const other = mkdtempSync(join(tmpdir(), 'orch-root-'));
    mkdirSync(dirname(join(other, path)), { recursive: true });
    writeFileSync(join(other, path), text);
    expect(readFacts({ root: other }).attributes.virtualization).toBe(expected);
    rmSync(other, { recursive: true });
  });
});

describe('os-release', () => {
  it.each<[string, string, string | undefined, string | undefined]>([
    ['Debian', 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n', 'debian', '12'],
    ['Ubuntu', 'NAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian\n', 'ubuntu', '24.04'],
    ['Alpine', 'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.20.1\n', 'alpine', '3.20.1'],
    ['a rolling one', 'NAME="Arch Linux"\nID=arch\nBUILD_ID=rolling\n', 'arch', undefined],
    ['single quotes', "ID='rocky'\nVERSION_ID='9.4'\n", 'rocky', '9.4'],
    ['escapes and comments', '# ID=no\n\n ID="a\\"b\\\\c"\nVERSION_ID=\nbroken\n', 'a"b\\c', ''],
    ['nothing', '', undefined, undefined],
  ])('of %s', (_, text, id, version) => {
    const values = parseOsRelease(text);
    expect([values.get('ID'), values.get('VERSION_ID')]).toEqual([id, version]);
  });
});
