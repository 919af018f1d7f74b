/** `kernel-module-linux`: a module of the Linux kernel that is loaded, now and after each start. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { commandFailure } from './command.js';
import { checkOneLine } from './edits/file-edit.js';
import { textIn } from './edits/text-file.js';
import { type FileStep, type PathFact, READ_BATCH, type Step } from './host.js';
import { type Decision, defineResource, type FieldChange } from './kind.js';

const schema = closed({
  name: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9_-]*$',
    maxLength: 56,
    description: 'Name of the module, such as "br_netfilter"',
  }),
  options: optional(
    Type.String({ minLength: 1, description: 'Its parameters, such as "numdummies=2"; null: not managed' }),
  ),
});

type ModuleBody = Type.Static<typeof schema>;

interface ModuleHave {
  /** Directory of the kernel for a module that is loaded or built in. */
  readonly loaded: PathFact;
  /** The file that has it loaded at each start. */
  readonly atBoot: PathFact;
  /** The file with its options. */
  readonly options: PathFact;
}

export const kernelModuleLinux = defineResource<ModuleBody, ModuleHave>({
  kind: 'kernel-module-linux',
  family: 'kernel-module-linux',
  platforms: ['linux'],
  schema,
  check: ({ options }) => checkOneLine('options', options),
  identity: ({ name }) => nameOf(name),
  requires: () => [],
  batch: READ_BATCH,

  read(host, wants) {
    const facts = host.observe(
      wants.flatMap(({ name }) => {
        const { atBoot, options, loaded } = moduleFiles(name);
        return [loaded, atBoot, options].map((path) => ({ path, content: path !== loaded, entries: false }));
      }),
    );
    return wants.map((_, at) => {
      const [loaded = UNREAD, atBoot = UNREAD, options = UNREAD] = facts.slice(at * 3, at * 3 + 3);
      return { loaded, atBoot, options };
    });
  },

  exists: ({ atBoot }) => atBoot.type !== 'absent',

  plan({ name, options }, have): Decision {
    const refusal = Object.values(have).find((fact: PathFact) => fact.type === 'unreadable');
    if (refusal?.type === 'unreadable') return { action: 'fail', code: refusal.code, message: refusal.message };
    const own = nameOf(name);
    const files = moduleFiles(name);
    const isLoaded = have.loaded.type === 'directory';
    const changes: FieldChange[] = [];
    const steps: Step[] = [];
    const parameters = options == null ? null : `${MARKER}\noptions ${own} ${options}\n`;
    const isOutdated = parameters !== null && textIn(have.options) !== parameters;
    if (isOutdated) {
      changes.push({ field: 'options', before: optionsIn(textIn(have.options), own), after: options ?? null });
      steps.push(writing(files.options, parameters));
    }
    if (!isLoaded) {
      changes.push({ field: 'loaded', before: 'false', after: 'true' });
      steps.push({ do: 'run', command: { argv: ['modprobe', '--', own] } });
    }
    const content = `${MARKER}\n${own}\n`;
    if (textIn(have.atBoot) !== content) {
      changes.push({ field: 'at_boot', before: have.atBoot.type === 'absent' ? 'false' : 'changed', after: 'true' });
      steps.push(writing(files.atBoot, content));
    }
    if (changes.length === 0) return { action: 'none' };
    const reason =
      isOutdated && isLoaded ? { reason: 'the module is loaded, and takes the options when it is loaded anew' } : {};
    return { action: have.atBoot.type === 'absent' ? 'create' : 'update', changes, steps, ...reason };
  },

  planRemoval({ name }, { atBoot, options }): Decision {
    const refusal = [atBoot, options].find((fact) => fact.type === 'unreadable');
    if (refusal?.type === 'unreadable') return { action: 'fail', code: refusal.code, message: refusal.message };
    const files = moduleFiles(name);
    const steps: Step[] = [];
    if (atBoot.type === 'file') steps.push({ do: 'remove-file', path: files.atBoot });
    if (options.type === 'file') steps.push({ do: 'remove-file', path: files.options });
    if (steps.length === 0) return { action: 'none' };
    return {
      action: 'remove',
      changes: [],
      steps,
      reason: 'the module stays loaded until the next start of the machine',
    };
  },

  keepsWithheld: true,
  explain(_, { name }, step, result) {
    const { stderr } = result;
    if (/not found in directory|Module \S+ not found/.test(stderr)) {
      const message = `the kernel of this machine has no module ${name}; correct the name, or install the package that brings it`;
      return { code: 'value_unknown', message };
    }
    if (/Operation not permitted|Permission denied/.test(stderr)) {
      const message = `the kernel lets no module be loaded here, as in a container or without root; load ${name} on the host`;
      return { code: 'permission_denied', message };
    }
    return commandFailure(step.command, result);
  },
});

const UNREAD: PathFact = { type: 'unreadable', code: 'observe_failed', message: 'the module was not read' };
const MARKER = '# Managed by orch: what is changed here by hand will be undone.';

/** The kernel takes "-" and "_" in a name for the same, and shows "_". */
const nameOf = (name: string): string => name.replaceAll('-', '_');

/** Returns the paths that belong to a module. */
export function moduleFiles(name: string): {
  readonly loaded: string;
  readonly atBoot: string;
  readonly options: string;
} {
  const own = nameOf(name);
  return {
    loaded: `/sys/module/${own}`,
    atBoot: `/etc/modules-load.d/orch-${own}.conf`,
    options: `/etc/modprobe.d/orch-${own}.conf`,
  };
}

const optionsIn = (text: string | null, name: string): string | null => {
  const start = `options ${name} `;
  return (
    text
      ?.split('\n')
      .find((line) => line.startsWith(start))
      ?.slice(start.length) ?? null
  );
};

const writing = (path: string, content: string): FileStep => ({
  do: 'write-file',
  path,
  content,
  owner: null,
  group: null,
  mode: null,
  parents: true,
});
