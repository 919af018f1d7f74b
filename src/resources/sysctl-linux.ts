/** `sysctl-linux`: one setting of the Linux kernel, now and after each start. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';
import { checkOneLine } from './edits/file-edit.js';
import { type PathFact, READ_BATCH, type Step } from './host.js';
import { type BodyProblem, type Decision, defineResource, type FieldChange } from './kind.js';
import {
  explainKernelValue,
  type KernelValue,
  kernelText,
  plainValue,
  readKernelValues,
  refusalOfKernelValue,
  setKernelValue,
} from './linux/kernel-value.js';

const schema = closed({
  key: Type.String({
    pattern: '^[A-Za-z0-9_@:-]+(?:[./][A-Za-z0-9_@:-]+)+$',
    maxLength: 200,
    description: 'Name of a setting such as "vm.swappiness"',
  }),
  value: Type.Union([Type.String(), Type.Integer()], { description: 'Its value, numbers with blanks in between' }),
});

type SysctlBody = Type.Static<typeof schema>;

interface SysctlHave {
  readonly live: KernelValue;
  /** The file that sets it at each start. */
  readonly file: PathFact;
}

export const sysctlLinux = defineResource<SysctlBody, SysctlHave>({
  kind: 'sysctl-linux',
  family: 'sysctl-linux',
  platforms: ['linux'],
  schema,
  check: checkValue,
  identity: ({ key }) => nameOf(key),
  requires: ({ key }) => [
    { family: 'path', identity: DIRECTORY },
    { family: 'path', identity: sysctlFile(key) },
  ],
  batch: READ_BATCH,

  read(host, wants) {
    const values = readKernelValues(
      host,
      wants.map(({ key }) => sysctlPath(key)),
    );
    const files = host.observe(wants.map(({ key }) => ({ path: sysctlFile(key), content: true, entries: false })));
    return wants.map((_, at) => ({ live: values[at] ?? UNREAD, file: files[at] ?? UNREAD.fact }));
  },

  exists: ({ file }) => file.type !== 'absent',

  plan({ key, value }, { live, file }, { mayAppear }): Decision {
    const name = nameOf(key);
    const wanted = plainValue(String(value));
    const present = kernelText(live);
    const refusal = present === wanted ? null : refusalOfKernelValue(name, live);
    if (refusal !== null && !(mayAppear && live.fact.type === 'absent')) return { action: 'fail', ...refusal };
    if (file.type === 'unreadable') return { action: 'fail', code: file.code, message: file.message };
    if (file.type === 'directory' || file.type === 'other') {
      return { action: 'fail', code: 'wrong_type', message: `${sysctlFile(key)} is not a file; remove it` };
    }
    const content = `${MARKER}\n${name} = ${wanted}\n`;
    const kept = file.type === 'file' && file.content.kind === 'text' ? file.content.text : null;
    const changes: FieldChange[] = [];
    const steps: Step[] = [];
    if (present !== wanted) {
      changes.push({ field: 'value', before: present, after: wanted });
      steps.push(setKernelValue(sysctlPath(key), wanted));
    }
    if (kept !== content) {
      const before = kept === null ? null : (/^[^#\n]*=(.*)$/m.exec(kept)?.[1]?.trim() ?? 'none');
      changes.push({ field: 'at_boot', before, after: wanted });
      // The kernel has to accept the value first: a wrong one must not wait for the next start.
      steps.push({
        do: 'write-file',
        path: sysctlFile(key),
        content,
        owner: null,
        group: null,
        mode: null,
        parents: true,
      });
    }
    if (changes.length === 0) return { action: 'none' };
    return { action: file.type === 'absent' ? 'create' : 'update', changes, steps };
  },

  planRemoval({ key }, { file }): Decision {
    if (file.type === 'absent') return { action: 'none' };
    if (file.type === 'unreadable') return { action: 'fail', code: file.code, message: file.message };
    const path = sysctlFile(key);
    if (file.type !== 'file') return { action: 'release', reason: `${path} is no longer a file` };
    const reason = 'the kernel keeps the value until the next start of the machine';
    return { action: 'remove', changes: [], steps: [{ do: 'remove-file', path }], reason };
  },

  keepsWithheld: true,
  explain: (_, { key }, step, result) => explainKernelValue(nameOf(key), step, result),
});

const UNREAD: KernelValue = {
  fact: { type: 'unreadable', code: 'observe_failed', message: 'the setting was not read' },
  isReadOnly: false,
};

const MARKER = '# Managed by orch: what is changed here by hand will be undone.';
const DIRECTORY = '/etc/sysctl.d';

/** Returns the setting as `sysctl` prints it: parts with dots, and a slash for a dot within a part. */
const nameOf = (key: string): string => (/^[^./]*\//.test(key) ? swapped(key) : key);

const swapped = (key: string): string => key.replace(/[./]/g, (one) => (one === '.' ? '/' : '.'));

/** Returns the path of a setting below /proc/sys. */
export const sysctlPath = (key: string): string => `/proc/sys/${swapped(nameOf(key))}`;

/** Returns the file that sets it at each start. Its name comes behind those of others, the last of which counts. */
export const sysctlFile = (key: string): string => `${DIRECTORY}/99-zz-orch-${nameOf(key).replaceAll('/', ',')}.conf`;

function checkValue({ key, value }: Partial<SysctlBody>): readonly BodyProblem[] {
  const problems = [...checkOneLine('value', value)];
  if (value !== undefined && String(value).trim() === '') {
    problems.push({ path: '/value', message: 'value must not be empty' });
  }
  if (key !== undefined && nameOf(key) === 'kernel.hostname') {
    problems.push({
      path: '/key',
      message: 'the name of the machine is a resource of its own; declare hostname-linux',
    });
  }
  return problems;
}
