/** `mount-linux`: a file system that is mounted at a path, now and after each start of the machine. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { type CommandRefusal, type CommandResult, commandFailure } from './command.js';
import { contentAt, NEW_MODE, writeStep } from './edits/file-edit.js';
import { textIn } from './edits/text-file.js';
import { linesOf } from './edits/text-lines.js';
import { FORGET_UNIT } from './file-unix.js';
import type { Host, PathFact, RunStep, Step } from './host.js';
import {
  type BodyProblem,
  type Decision,
  defineResource,
  type FieldChange,
  type PlanContext,
  type ReadPurpose,
} from './kind.js';
import { findMissingParents, NO_MISSING_PARENTS } from './missing-parents.js';
import { FSTAB, type FstabEntry, formatEntry, fstabLine, isSameEntry, putEntry, takeEntry } from './mounts/fstab.js';
import {
  differenceOfOptions,
  fileSystemOptions,
  isBind,
  isMountedByOthers,
  remountOptions,
} from './mounts/mount-options.js';
import { type FoundSource, findSource, isMountedFrom, isOfType, isPath } from './mounts/mount-source.js';
import { MOUNT_TABLE, type MountEntry, parseMountTable } from './mounts/mount-table.js';
import { foreignDirectory, wayOf } from './unix/foreign-directory.js';
import { checkUnixPath } from './unix/unix-metadata.js';
import { aboveUnixPath, parentOf, parentOfUnixPath, UNIX_RULES } from './unix/unix-path.js';

const schema = closed({
  path: Type.String({ minLength: 1, description: 'Absolute path of the mount point, the identity of the resource' }),
  source: Type.String({
    minLength: 1,
    maxLength: 4096,
    description: 'What is mounted: a device, UUID=…, LABEL=…, HOST:/EXPORT, a directory for bind, or "tmpfs"',
  }),
  type: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*$',
    maxLength: 64,
    description: 'Type of the file system, such as "ext4"; "none" for bind',
  }),
  options: optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 1024, description: 'An option, such as "noatime"' }), {
      minItems: 1,
      maxItems: 64,
      description: 'Options of the mount [default: defaults]',
    }),
  ),
  mounted: optional(
    Type.Boolean({
      description: 'false: only in /etc/fstab, and not mounted now [default: true; with noauto: not managed]',
    }),
  ),
  non_empty: optional(
    Type.Boolean({ description: 'true: mounts over a directory that is not empty, and hides its content' }),
  ),
  dump: optional(Type.Integer({ minimum: 0, maximum: 1, description: 'Fifth field of /etc/fstab [default: 0]' })),
  pass: optional(
    Type.Integer({
      minimum: 0,
      maximum: 2,
      description: 'Order in which it is checked at a start; 0: never [default: 0]',
    }),
  ),
});

type MountBody = Type.Static<typeof schema>;

/** An absence has the path alone. */
type AnyMount = Pick<MountBody, 'path'> & Partial<MountBody>;

interface MountHave {
  readonly fstab: PathFact;
  /** The mounts at the path, the last of which counts; a text says why they are not known. */
  readonly entries: readonly MountEntry[] | CommandRefusal;
  /** Entry at the path; null for a mounted path, because looking at the mount of a lost server would block the agent. */
  readonly place: PathFact | null;
  readonly source: FoundSource;
  /** True when the last mount has the wanted source. */
  readonly isFromSource: boolean;
  readonly hasLine: boolean;
  /** Why no program gets the paths, because of the directories that they lie in; null for nothing. */
  readonly unsafe: string | null;
}

export const mountLinux = defineResource<AnyMount, MountHave>({
  kind: 'mount-linux',
  family: 'mount-linux',
  platforms: ['linux'],
  schema,
  check: checkMount,
  identity: ({ path }) => path,
  edits: () => FSTAB,
  requires: ({ path, source }) => [
    ...parentOfUnixPath(path),
    { family: 'path', identity: FSTAB },
    ...(source !== undefined && isPath(source)
      ? [
          { family: 'path', identity: source } as const,
          ...wayOf(source).map((identity) => ({ family: 'mount-linux', identity }) as const),
        ]
      : []),
  ],
  // A directory that orch makes for the mount goes after it.
  above: ({ path }) => [{ family: 'path', identity: path }, ...aboveUnixPath({ path })],
  read,
  exists: ({ hasLine, entries }) => hasLine || !('code' in entries || entries.length === 0),

  plan(want, have, context): Decision {
    const entry = entryOf(want);
    const found = contentAt(FSTAB, have.fstab, context);
    if ('code' in found) return { action: 'fail', ...found };
    if ('code' in have.entries) return { action: 'fail', ...have.entries };
    const lines = linesOf(found.text ?? '');
    const line = fstabLine(want.path, lines);
    if (line !== null && 'refusal' in line) return unsuitable(line.refusal);
    const live = planLive(want, have, line?.entry ?? null, context);
    if ('action' in live) return live;
    const isWritten = line !== null && isSameEntry(line.entry, entry);
    if (live.unmounts.length + live.mounts.length === 0 && isWritten) return { action: 'none' };
    if (context.sensitive) {
      return unsuitable(
        `everyone can read ${FSTAB}, so no secret is written into it; put it into a file-unix with mode "0600", and name that in an option, such as credentials=/etc/share.cred`,
      );
    }
    const refusal = refusalOfWay(have, context);
    if (refusal !== null) return refusal;
    const isMoved = line !== null && line.entry.source !== entry.source && live.mounts.length > 0;
    // systemd unmounts at once what belongs to a unit whose device is missing, so it has to forget the source of before first. The new
    // line follows the mount: one that cannot be mounted would stop the next start of the machine.
    const forgotten = isMoved ? writeStep(FSTAB, found.text, takeEntry(want.path, lines), null) : null;
    const before = forgotten === null ? found.text : forgotten.content;
    const steps: Step[] = [...live.unmounts];
    if (forgotten !== null) steps.push(forgotten, FORGET_UNIT);
    steps.push(...live.mounts);
    const changes = [...live.changes];
    if (!isWritten) {
      changes.push({ field: 'at_boot', before: line?.text ?? null, after: formatEntry(entry) });
      steps.push(writeStep(FSTAB, before, putEntry(entry, lines), found.text === null ? NEW_MODE : null), FORGET_UNIT);
    }
    return {
      action: line === null && have.entries.length === 0 ? 'create' : 'update',
      changes,
      steps,
      ...live.makes,
      ...(live.reason === undefined ? {} : { reason: live.reason }),
      unmet: {
        message: `the mount at ${want.path} is not as it was declared; is its device write-protected ("options: [ro]"), or is something else mounted over it`,
      },
    };
  },

  planRemoval(last, have, context): Decision {
    const { path } = last;
    const found = contentAt(FSTAB, have.fstab, context);
    if ('code' in found) return { action: 'fail', ...found };
    if ('code' in have.entries) return { action: 'fail', ...have.entries };
    const lines = linesOf(found.text ?? '');
    const rest = takeEntry(path, lines);
    const isForeign = have.entries.length > 0 && last.source !== undefined && !have.isFromSource;
    const steps: Step[] = isForeign ? [] : have.entries.map(() => unmounting(path));
    if (rest !== lines) steps.push(writeStep(FSTAB, found.text, rest, null), FORGET_UNIT);
    if (steps.length === 0) return { action: 'none' };
    const refusal = refusalOfWay(have, context);
    if (refusal !== null) return refusal;
    const reason = isForeign ? { reason: `something else is mounted at ${path}, and stays so` } : {};
    return { action: 'remove', changes: [], steps, ...reason };
  },

  keepsWithheld: true,
  explain: (_host, body, { command }, result) => explainMount(body, command, result),
});

async function read(host: Host, wants: readonly AnyMount[], purpose: ReadPurpose): Promise<readonly MountHave[]> {
  const [fstab = UNREAD, list = UNREAD] = host.observe(
    [FSTAB, MOUNT_TABLE].map((path) => ({ path, content: true, entries: false })),
  );
  const table = list.type === 'file' && list.content.kind === 'text' ? parseMountTable(list.content.text) : null;
  const text = textIn(fstab);
  const own = host.accounts().own.uid;
  const found: MountHave[] = [];
  for (const want of wants) {
    const { path, source = '', type = 'none', options } = want;
    const sought = { source, type, isBind: isBind(options ?? []) };
    const entries = table?.filter((entry) => entry.path === path);
    const last = entries?.at(-1);
    const isSought = want.source !== undefined && purpose !== 'removal';
    const at = isSought || last !== undefined ? await findSource(host, sought) : NO_SOURCE;
    const [place = UNREAD] = last === undefined ? host.observe([{ path, content: false, entries: true }]) : [null];
    found.push({
      fstab,
      entries: entries ?? { code: 'observe_failed', message: `${MOUNT_TABLE} was not read` },
      place,
      source: at,
      isFromSource: last !== undefined && table !== null && isMountedFrom(host, sought, at, last, table),
      hasLine: text !== null && fstabLine(path, linesOf(text)) !== null,
      unsafe: linkOnWay(host, path) ?? foreignOnWay(host, waysOf(path, sought), own),
    });
  }
  return found;
}

const UNREAD: PathFact = { type: 'unreadable', code: 'observe_failed', message: `${FSTAB} was not read` };
const NO_SOURCE: FoundSource = { at: '', problem: null };

/** Returns the directories that lead to the mount point and to the source. */
const waysOf = (path: string, { source }: { readonly source: string }): readonly string[] => [
  ...wayOf(parentOf(path)),
  ...(isPath(source) ? wayOf(parentOf(source)) : []),
];

function foreignOnWay(host: Host, way: readonly string[], own: number): string | null {
  const foreign = foreignDirectory(host, way, own);
  return foreign === null
    ? null
    : `${foreign}, so that others could exchange what is mounted, or where; declare paths in directories of root`;
}

/** The kernel lists a mount by the path without links, and systemd takes no other one. */
function linkOnWay(host: Host, path: string): string | null {
  const way = wayOf(parentOf(path));
  const facts = host.observe(way.map((one) => ({ path: one, content: false, entries: false })));
  for (const [at, fact] of facts.entries()) {
    if (fact.type === 'symlink') return `${way[at]} is a symlink to ${fact.target}; declare the path without links`;
  }
  return null;
}

const optionsOf = ({ options }: AnyMount): readonly string[] => options ?? ['defaults'];

const entryOf = (want: AnyMount): FstabEntry => ({
  source: want.source ?? '',
  path: want.path,
  type: want.type ?? 'auto',
  options: optionsOf(want),
  dump: want.dump ?? 0,
  pass: want.pass ?? 0,
});

/** Changes to the running machine, without those to /etc/fstab. */
interface Live {
  readonly changes: readonly FieldChange[];
  readonly unmounts: readonly Step[];
  readonly mounts: readonly Step[];
  readonly makes?: { readonly makes?: readonly string[] };
  readonly reason?: string;
}

const NOTHING: Live = { changes: [], unmounts: [], mounts: [] };

/** @param line the entry that /etc/fstab has for the path */
function planLive(want: AnyMount, have: MountHave, line: FstabEntry | null, context: PlanContext): Live | Decision {
  const { path } = want;
  const entries = 'code' in have.entries ? [] : have.entries;
  const last = entries.at(-1);
  const wanted = want.mounted ?? (isMountedByOthers(optionsOf(want)) ? null : true);
  if (wanted === false) {
    const changes = entries.length === 0 ? [] : [{ field: 'mounted', before: 'true', after: 'false' }];
    return { changes, unmounts: entries.map(() => unmounting(path)), mounts: [] };
  }
  if (last === undefined) return wanted === null ? NOTHING : planNew(want, have, context);
  if (wanted === null && last.type === 'autofs') return NOTHING;
  const isOther = !have.isFromSource;
  if (isOther || !isOfType(want.type ?? 'auto', last)) {
    const problem = problemOfSource(want, have, context);
    if (problem !== null) return problem;
    const changes = isOther
      ? [{ field: 'source', before: shownSource(last), after: want.source ?? null }]
      : [{ field: 'type', before: last.type, after: want.type ?? null }];
    return { changes, unmounts: [unmounting(path)], mounts: [mounting(want, optionsOf(want).join(','))] };
  }
  return planOptions(want, last, line);
}

/** Bind mounts have the source of their file system, so that the directory in it says more. */
const shownSource = ({ source, root }: MountEntry): string => (root === '/' ? source : `${source}[${root}]`);

/** Changes the options of a mount without unmounting it, because that would take the file system from its users. */
function planOptions(want: AnyMount, last: MountEntry, line: FstabEntry | null): Live {
  const options = optionsOf(want);
  const difference = differenceOfOptions(options, last);
  const [before, after] = [line?.options ?? options, options].map((list) => fileSystemOptions(list));
  const added = (after ?? []).filter((option) => !(before ?? []).includes(option));
  const dropped = (before ?? []).filter((option) => !(after ?? []).includes(option));
  const names = new Set(added.map((option) => option.split('=')[0]));
  const left = dropped.filter((option) => !names.has(option.split('=')[0]));
  const reason =
    left.length === 0 ? {} : { reason: `${left.join(',')} holds until ${want.path} is unmounted and mounted anew` };
  if (difference === null && added.length === 0) return { ...NOTHING, ...reason };
  return {
    changes: difference === null ? [] : [{ field: 'options', ...difference }],
    unmounts: [],
    mounts: [mounting(want, remountOptions(options))],
    ...reason,
  };
}

function planNew(want: AnyMount, have: MountHave, context: PlanContext): Live | Decision {
  const { path } = want;
  const place = have.place ?? UNREAD;
  const problem = problemOfSource(want, have, context);
  if (problem !== null) return problem;
  const mounted = { field: 'mounted', before: 'false', after: 'true' };
  const mounts = [mounting(want, optionsOf(want).join(','))];
  switch (place.type) {
    case 'directory': {
      const count = place.entries?.length ?? null;
      if (count === 0 || want.non_empty === true) return { ...NOTHING, changes: [mounted], mounts };
      const held = count === null ? 'many entries' : `${count} ${count === 1 ? 'entry' : 'entries'}`;
      return unsuitable(
        `${path} holds ${held}, which the mount would hide; move them away, or write "non_empty: true"`,
      );
    }
    case 'absent': {
      if (place.isVirtual)
        return unsuitable(`${path} lies in a file system in which only the kernel makes directories`);
      const isUnderMount =
        context.purpose === 'plan' && wayOf(parentOf(path)).some((at) => context.declares('mount-linux', at));
      const missing = isUnderMount ? NO_MISSING_PARENTS : findMissingParents({ path }, place, context, UNIX_RULES);
      if (missing.refusal) return missing.refusal;
      const make: Step = { do: 'make-directory', path, owner: null, group: null, mode: null, ...missing.parents };
      return { ...NOTHING, changes: [...missing.changes, mounted], mounts: [make, ...mounts], makes: missing.makes };
    }
    case 'unreadable':
      return { action: 'fail', code: place.code, message: place.message };
    case 'symlink':
      return wrongType(`${path} is a symlink to ${place.target}; declare the path that it leads to`);
    case 'other':
      return wrongType(`${path} is a ${place.what}, not a directory`);
    case 'file':
      return wrongType(`${path} is a file, not a directory`);
  }
}

function problemOfSource(want: AnyMount, { source: { problem } }: Pick<MountHave, 'source'>, context: PlanContext) {
  if (problem === null) return null;
  const isToCome = context.mayAppear || (want.source !== undefined && context.declares('path', want.source));
  if (problem.mayCome && isToCome) return null;
  return { action: 'fail', code: problem.code, message: problem.message } as const;
}

const mounting = ({ path, type = 'auto', source = '' }: AnyMount, options: string): RunStep => ({
  do: 'run',
  command: { argv: ['mount', '-t', type, '-o', options, '--', source, path] },
});

const unmounting = (path: string): RunStep => ({ do: 'run', command: { argv: ['umount', '--', path] } });

const unsuitable = (message: string): Decision => ({ action: 'fail', code: 'content_unsuitable', message });
const wrongType = (message: string): Decision => ({ action: 'fail', code: 'wrong_type', message });

/** Returns why this agent must not mount or unmount; null when it may. */
function refusalOfWay({ unsafe }: MountHave, { accounts }: PlanContext): Decision | null {
  if (accounts.own.uid !== 0) {
    const message = 'only root mounts and unmounts file systems; run the agent as root, or leave this resource out';
    return { action: 'fail', code: 'permission_denied', message };
  }
  return unsafe === null ? null : { action: 'fail', code: 'unsafe_path', message: unsafe };
}

/** Quotes no output that may hold secrets. */
function explainMount(
  { path, source = '', type = '' }: AnyMount,
  command: RunStep['command'],
  result: CommandResult,
): CommandRefusal {
  const { stderr } = result;
  const [program] = command.argv;
  if (program !== 'mount' && program !== 'umount') return commandFailure(command, result);
  const output = { output: result };
  if (/target is busy|device is busy/.test(stderr)) {
    const message = `${path} is in use, so it stays mounted, and nothing was changed; "fuser -vm ${path}" names the programs and "findmnt -R ${path}" what is mounted in it; stop them, and apply again`;
    return { code: 'busy', message };
  }
  if (/must be superuser|permission denied|Operation not permitted/i.test(stderr)) {
    const message = `the system lets ${path} not be mounted or unmounted here, as in a container without that right`;
    return { code: 'permission_denied', message, ...output };
  }
  if (/unknown filesystem type/.test(stderr)) {
    const message = `the kernel of this machine knows no file system ${type}; correct the type, or install the package that brings it`;
    return { code: 'value_unknown', message };
  }
  if (/does not exist|can't find|No such (?:file|device)/.test(stderr)) {
    return { code: 'file_missing', message: `${source} cannot be mounted, because it is not there`, ...output };
  }
  if (/wrong fs type|bad option|[Ii]nvalid argument/.test(stderr)) {
    const isRemount = command.argv.some((word) => word.startsWith('remount,'));
    const message = isRemount
      ? `the file system does not take these options while it is mounted; correct them, or unmount ${path} and apply again`
      : `${source} cannot be mounted as ${type} with these options; is it a file system of that type, are the options right, and is the program mount.${type} installed where it needs one`;
    return { code: 'value_unknown', message, ...output };
  }
  return commandFailure(command, result);
}

/** Directories that a machine does not run without. */
const OF_SYSTEM = /^\/(?:bin|dev|etc|lib(?:32|64|x32)?|proc|run|sbin|sys|usr)?$/;
/** Below these, only the kernel has directories. */
const OF_KERNEL = /^\/(?:proc|sys|dev)\//;
const MOUNTABLE: readonly string[] = ['/dev/shm', '/dev/hugepages', '/dev/mqueue'];

function checkMount(body: AnyMount): readonly BodyProblem[] {
  const { path, source, type, options, mounted, non_empty } = body;
  const problems: BodyProblem[] = [];
  const add = (at: string, message: string) => problems.push({ path: at, message });
  if (OF_SYSTEM.test(path) || (OF_KERNEL.test(path) && !MOUNTABLE.includes(path))) {
    add('/path', `path must not be ${path}, which the system itself needs`);
  } else {
    problems.push(...checkUnixPath({ path }));
    if (/\p{Cc}/u.test(path)) add('/path', 'path must not contain control characters');
  }
  if (type === 'swap') {
    add('/type', 'swap has no mount point; declare its line with line-unix in /etc/fstab, and "swapon -a" in a script');
  }
  if (source !== undefined) {
    if (/\p{Cc}/u.test(source) || source.startsWith('-'))
      add('/source', 'source must be one line, and must not begin with "-"');
    if (isBind(options ?? []) && !isPath(source))
      add('/source', 'source must be the path of a directory, because of "bind"');
    if (isPath(source))
      problems.push(
        ...checkUnixPath({ path: source }).map(({ message }) => ({
          path: '/source',
          message: message.replace(/^path/, 'source'),
        })),
      );
  }
  if (options != null && isBind(options) && type !== 'none') add('/type', 'type must be "none", because of "bind"');
  for (const [at, option] of (options ?? []).entries()) {
    const problem = problemOfOption(option);
    if (problem !== null) add(`/options/${at}`, problem);
  }
  if (non_empty != null && mounted === false)
    add('/non_empty', 'non_empty is for what is mounted, and "mounted" is false');
  return problems;
}

function problemOfOption(option: string): string | null {
  if (option.includes(',')) return 'each option is an element of its own, without commas';
  if (/[\s\p{Cc}]/u.test(option)) return 'an option must not contain blanks';
  if (/^(?:password|pass|passwd|password2)=/.test(option)) {
    return `everyone can read ${FSTAB}; put the password into a file-unix with mode "0600", and write credentials=PATH`;
  }
  if (/^(?:remount|move|make-.*)$/.test(option)) return `"${option}" is a command, not an option that lasts`;
  return null;
}
