/** `hostname-linux`: the name of the machine, now and after each start. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';
import type { PathFact, Step } from './host.js';
import { type Decision, defineResource, type FieldChange } from './kind.js';
import {
  explainKernelValue,
  type KernelValue,
  kernelText,
  readKernelValues,
  refusalOfKernelValue,
  setKernelValue,
} from './linux/kernel-value.js';

const schema = closed({
  name: Type.String({
    pattern: '^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$',
    maxLength: 64,
    description: 'Name of letters, digits, hyphens and dots, such as "web-01"',
  }),
});

type HostnameBody = Type.Static<typeof schema>;

interface HostnameHave {
  readonly live: KernelValue;
  readonly file: PathFact;
}

/** The file with the name, and the identity: a machine has one name. */
const FILE = '/etc/hostname';
export const KERNEL_HOSTNAME = '/proc/sys/kernel/hostname';
const WHAT = 'the name of the machine';

export const hostnameLinux = defineResource<HostnameBody, HostnameHave>({
  kind: 'hostname-linux',
  family: 'path',
  platforms: ['linux'],
  schema,
  check: () => [],
  identity: () => FILE,
  requires: () => [],

  read(host, wants) {
    const [live] = readKernelValues(host, [KERNEL_HOSTNAME]);
    const [file] = host.observe([{ path: FILE, content: true, entries: false }]);
    return wants.map(() => ({ live: live ?? UNREAD, file: file ?? UNREAD.fact }));
  },

  // A machine always has a name.
  exists: () => true,

  plan({ name }, { live, file }): Decision {
    if (file.type === 'unreadable') return { action: 'fail', code: file.code, message: file.message };
    if (file.type !== 'file' && file.type !== 'absent') {
      const what = file.type === 'other' ? file.what : file.type;
      return { action: 'fail', code: 'wrong_type', message: `${FILE} is a ${what}, not a file` };
    }
    const present = kernelText(live);
    const refusal = present === name ? null : refusalOfKernelValue(WHAT, live);
    if (refusal !== null) return { action: 'fail', ...refusal };
    const kept = file.type === 'file' && file.content.kind === 'text' ? nameIn(file.content.text) : null;
    const changes: FieldChange[] = [];
    const steps: Step[] = [];
    if (present !== name) {
      changes.push({ field: 'name', before: present, after: name });
      steps.push(setKernelValue(KERNEL_HOSTNAME, name));
    }
    if (kept !== name) {
      changes.push({ field: 'at_boot', before: kept, after: name });
      steps.push({ do: 'write-file', path: FILE, content: `${name}\n`, owner: null, group: null, mode: null });
    }
    return changes.length === 0 ? { action: 'none' } : { action: 'update', changes, steps };
  },

  planRemoval: () => ({ action: 'release', reason: 'a machine keeps its name' }),
  removes: () => false,

  keepsWithheld: true,
  explain: (_, __, step, result) => explainKernelValue(WHAT, step, result),
});

const UNREAD: KernelValue = {
  fact: { type: 'unreadable', code: 'observe_failed', message: 'the name was not read' },
  isReadOnly: false,
};

/** Returns the name in the file, whose comments are skipped as systemd does; null without one. */
const nameIn = (text: string): string | null =>
  text
    .split('\n')
    .map((line) => line.trim())
    .find((line) => line !== '' && !line.startsWith('#')) ?? null;
