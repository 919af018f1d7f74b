/** `alternatives-linux`: which of several programs a general name such as `editor` means. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';
import { commandFailure } from './command.js';
import { checkOneLine } from './edits/file-edit.js';
import { textIn } from './edits/text-file.js';
import { type PathFact, READ_BATCH } from './host.js';
import { type Decision, defineResource, type FieldChange } from './kind.js';
import { checkUnixPath } from './unix/unix-metadata.js';

const schema = closed({
  name: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._+-]*$',
    maxLength: 128,
    description: 'General name such as "editor"',
  }),
  path: Type.String({ minLength: 1, description: 'Absolute path of the program that it means' }),
});

type AlternativesBody = Type.Static<typeof schema>;

interface AlternativesHave {
  readonly link: PathFact;
  /** Record of `update-alternatives` about the name. */
  readonly record: PathFact;
}

/** Directories with the records: of Debian, and of Fedora and its relatives. */
export const ALTERNATIVE_RECORDS = ['/var/lib/dpkg/alternatives', '/var/lib/alternatives'] as const;

export const alternativesLinux = defineResource<AlternativesBody, AlternativesHave>({
  kind: 'alternatives-linux',
  family: 'alternatives-linux',
  platforms: ['linux'],
  schema,
  check: ({ path }) => [...checkUnixPath({ path }), ...checkOneLine('path', path)],
  identity: ({ name }) => name,
  requires: ({ path }) => [{ family: 'path', identity: path }],
  batch: READ_BATCH,

  read(host, wants) {
    const facts = host.observe(
      wants.flatMap(({ name }) => [
        { path: linkOf(name), content: false, entries: false },
        ...ALTERNATIVE_RECORDS.map((directory) => ({ path: `${directory}/${name}`, content: true, entries: false })),
      ]),
    );
    return wants.map((_, at) => {
      const [link = UNREAD, debian = UNREAD, fedora = UNREAD] = facts.slice(at * 3, at * 3 + 3);
      return { link, record: debian.type === 'absent' ? fedora : debian };
    });
  },

  // A choice that was made by hand before stays when it is no longer declared.
  exists: ({ record }) => recordIn(record)?.isManual === true,

  plan({ name, path }, { link, record }, { mayAppear }): Decision {
    const refusal = unreadable(link, record);
    if (refusal !== null) return refusal;
    const known = recordIn(record);
    const set = { do: 'run', command: { argv: ['update-alternatives', '--set', name, path] } } as const;
    if (known === null || !known.paths.includes(path)) {
      if (mayAppear) {
        return { action: 'create', changes: [{ field: 'path', before: null, after: path }], steps: [set] };
      }
      const message =
        known === null
          ? `this machine has no alternatives for ${name}; correct the name, or declare the package that brings them before`
          : `${path} is no alternative for ${name}, which are ${known.paths.join(', ')}; correct the path, or declare the package that brings it before`;
      return { action: 'fail', code: 'value_unknown', message };
    }
    const present = link.type === 'symlink' ? link.target : null;
    const changes: FieldChange[] = [];
    if (present !== path) changes.push({ field: 'path', before: present, after: path });
    // An automatic choice may change with the next package.
    if (!known.isManual) changes.push({ field: 'mode', before: 'auto', after: 'manual' });
    if (changes.length === 0) return { action: 'none' };
    return { action: known.isManual ? 'update' : 'create', changes, steps: [set] };
  },

  planRemoval({ name }, { link, record }): Decision {
    const refusal = unreadable(link, record);
    if (refusal !== null) return refusal;
    if (recordIn(record)?.isManual !== true) return { action: 'none' };
    const reason = 'the alternative with the highest priority counts again';
    const command = { argv: ['update-alternatives', '--auto', name] } as const;
    return { action: 'remove', changes: [], steps: [{ do: 'run', command }], reason };
  },

  keepsWithheld: true,
  explain(_, { name }, step, result) {
    if (!/Permission denied|not permitted/.test(result.stderr)) return commandFailure(step.command, result);
    return { code: 'permission_denied', message: `only root may choose the alternative for ${name}` };
  },
});

const UNREAD: PathFact = { type: 'unreadable', code: 'observe_failed', message: 'the alternatives were not read' };

const linkOf = (name: string): string => `/etc/alternatives/${name}`;

function unreadable(...facts: readonly PathFact[]): Extract<Decision, { action: 'fail' }> | null {
  const found = facts.find((fact) => fact.type === 'unreadable');
  return found === undefined ? null : { action: 'fail', code: found.code, message: found.message };
}

interface AlternativesRecord {
  readonly isManual: boolean;
  /** Paths that can be chosen. */
  readonly paths: readonly string[];
}

/**
 * Parses a record: the mode, the link, names and links of companions, a blank line, and then for each alternative its path, its
 * priority and the paths of its companions.
 */
function recordIn(record: PathFact): AlternativesRecord | null {
  const text = textIn(record);
  if (text === null) return null;
  const lines = text.split('\n');
  const isPriority = (line: string | undefined) => line !== undefined && /^-?\d+$/.test(line);
  const paths = lines.filter((line, at) => at > 1 && line.startsWith('/') && isPriority(lines[at + 1]?.split(' ')[0]));
  return { isManual: lines[0] === 'manual', paths: paths.map((path) => path.trim()) };
}
