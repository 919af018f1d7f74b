/** Tells in which virtual machine or container this system runs, with the names of systemd-detect-virt. */
import type { MachineFiles } from './machine-files.js';

/** Makers of virtual machines, as the firmware names them. */
const MAKERS: readonly (readonly [RegExp, string])[] = [
  [/amazon ec2/i, 'amazon'],
  [/google/i, 'google'],
  [/vmware/i, 'vmware'],
  [/innotek|virtualbox|oracle/i, 'oracle'],
  [/microsoft.*virtual|hyper-v/i, 'microsoft'],
  [/parallels/i, 'parallels'],
  [/bhyve/i, 'bhyve'],
  [/apple virtualization/i, 'apple'],
  [/\bxen\b/i, 'xen'],
  [/kvm|openstack|digitalocean|hetzner/i, 'kvm'],
  [/qemu|bochs/i, 'qemu'],
];

const FIRMWARE = ['product_name', 'sys_vendor', 'board_vendor', 'bios_vendor'].map(
  (name) => `/sys/class/dmi/id/${name}`,
);

/** Returns `none` for a machine of hardware. Linux only. */
export const readVirtualization = (files: MachineFiles): string => containerOf(files) ?? machineOf(files);

function containerOf(files: MachineFiles): string | null {
  const manager = files.word('/run/systemd/container');
  if (manager !== undefined) return /^[a-z][a-z0-9-]{0,31}$/.test(manager) ? manager : 'container-other';
  if (/microsoft|wsl/i.test(files.text('/proc/sys/kernel/osrelease'))) return 'wsl';
  if (files.names('/run').includes('.containerenv')) return 'podman';
  return files.names('/').includes('.dockerenv') ? 'docker' : null;
}

function machineOf(files: MachineFiles): string {
  const firmware = FIRMWARE.map((path) => files.text(path)).join('\n');
  const maker = MAKERS.find(([pattern]) => pattern.test(firmware))?.[1];
  const isKvm = /\bkvm-clock\b/.test(files.text('/sys/devices/system/clocksource/clocksource0/available_clocksource'));
  if (maker !== undefined) return maker === 'qemu' && isKvm ? 'kvm' : maker;
  if (isKvm) return 'kvm';
  if (files.word('/sys/hypervisor/type') === 'xen') return 'xen';
  return /^flags\s*:.*\bhypervisor\b/m.test(files.text('/proc/cpuinfo')) ? 'vm-other' : 'none';
}
