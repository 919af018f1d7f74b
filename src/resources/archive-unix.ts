/** `archive-unix`: the files of a tar or zip in a directory, as the archive has them, beside foreign files that stay. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { ARCHIVE_FORMATS, type ArchiveFormat, DECOMPRESSORS, formatOfName } from './archive/format.js';
import {
  type ArchiveReading,
  MAX_STRIP,
  refusalOfOwner,
  type Unpacked,
  type UnpackedFact,
} from './archive/unpacked.js';
import { type CommandEnd, type CommandRefusal, commandFailure } from './command.js';
import { checkContent, contentFields, nameOfSource, shortDigest, wantedFile } from './file-content.js';
import type { PathFact, SourceFile } from './host.js';
import { type BodyProblem, type Decision, defineResource, type FieldChange, type PlanContext } from './kind.js';
import { findMissingParents, parentsField } from './missing-parents.js';
import { checkUnixPath, holdersOfUnixPath, refusalOfVirtual, unknownPrincipal } from './unix/unix-metadata.js';
import { aboveUnixPath, UNIX_RULES } from './unix/unix-path.js';

const { source, url, sha256 } = contentFields;

const schema = closed({
  path: Type.String({ minLength: 1, description: 'Absolute path of the directory, the identity of the resource' }),
  source,
  url,
  sha256,
  format: optional(Type.Enum(ARCHIVE_FORMATS, { description: 'Format of the archive, if its name does not tell it' })),
  strip: optional(
    Type.Integer({ minimum: 0, maximum: MAX_STRIP, description: 'Leading components that each name loses (0)' }),
  ),
  owner: optional(Type.String({ minLength: 1, description: 'User name or numeric id; null: not managed' })),
  group: optional(Type.String({ minLength: 1, description: 'Group name or numeric id; null: not managed' })),
  replace: optional(Type.Boolean({ description: 'true: files that were not unpacked here are replaced' })),
  parents: parentsField,
});

type ArchiveBody = Type.Static<typeof schema>;

interface ArchiveHave {
  readonly fact: PathFact;
  readonly unpacked: UnpackedFact;
  /** Why the program for the format cannot be started; null when it can. */
  readonly program: (CommandRefusal & { readonly missing: boolean }) | null;
}

export const archiveUnix = defineResource<ArchiveBody, ArchiveHave>({
  kind: 'archive-unix',
  family: 'archive-unix',
  platforms: ['linux', 'macos'],
  schema,
  check: (body) => [...checkUnixPath(body), ...checkArchive(body)],
  identity: ({ path }) => path,
  requires: (body) => [{ family: 'path', identity: body.path }, ...holdersOfUnixPath(body)],
  above: aboveUnixPath,
  batch: 1,

  read(host, wants) {
    const facts = host.observe(wants.map(({ path }) => ({ path, content: false, entries: false })));
    const unpacked = host.unpacked?.(wants.map(({ path, owner = null, group = null }) => ({ path, owner, group })));
    return wants.map((want, at) => {
      const argv = DECOMPRESSORS[formatOf(want) ?? 'tar'];
      const end = argv === undefined ? null : (host.unstartable?.({ argv }) ?? null);
      return {
        fact: facts[at] ?? { type: 'unreadable', code: 'observe_failed', message: `${want.path} was not read` },
        unpacked: unpacked?.[at] ?? null,
        program: argv === undefined || end === null ? null : problemOfProgram(argv, end),
      };
    });
  },

  exists: ({ fact, unpacked }) => fact.type === 'directory' && unpacked !== null,

  plan(want, { fact, unpacked, program }, context): Decision {
    const { path } = want;
    const archive = wantedFile(want);
    const format = formatOf(want);
    if (archive === null || format === null) throw new Error(`archive-unix of ${path} has no archive`);
    if (fact.type === 'unreadable') return { action: 'fail', code: fact.code, message: fact.message };
    if (fact.type !== 'directory' && fact.type !== 'absent') {
      const mend = fact.type === 'symlink' ? `; declare the path of its target, ${fact.target}` : '';
      return { action: 'fail', code: 'wrong_type', message: `${path} is no directory${mend}` };
    }
    if (typeof unpacked === 'string') return { action: 'fail', code: 'observe_failed', message: unpacked };
    if (fact.type === 'absent' && fact.isVirtual) return { action: 'fail', ...refusalOfVirtual(path) };
    const missing = fact.type === 'absent' ? findMissingParents(want, fact, context, UNIX_RULES) : null;
    const refusal = missing?.refusal ?? unknownPrincipal(want, context);
    if (refusal) return { ...refusal, action: 'fail' };
    const changes =
      unpacked === null ? changesOfNew(want, archive) : changesOf(want, { archive, format, unpacked }, context);
    if (changes.length === 0) return { action: 'none' };
    const foreign = fact.type === 'directory' ? ownerInTheWay(want, fact, context) : null;
    if (foreign !== null) return { action: 'fail', code: 'unsafe_path', message: foreign };
    if (program !== null && !(program.missing && context.mayAppear)) {
      const { code, message } = program;
      return { action: 'fail', code, message };
    }
    return {
      action: unpacked === null || fact.type === 'absent' ? 'create' : 'update',
      changes: [...(missing?.changes ?? []), ...changes],
      steps: [
        {
          do: 'unpack',
          path,
          content: archive,
          format,
          strip: want.strip ?? 0,
          owner: want.owner ?? null,
          group: want.group ?? null,
          replace: want.replace === true,
          spares: sparesOf(path, unpacked, context),
          ...missing?.parents,
        },
      ],
      ...missing?.makes,
    };
  },

  planRemoval({ path }, { fact, unpacked }, context): Decision {
    if (fact.type === 'unreadable') return { action: 'fail', code: fact.code, message: fact.message };
    if (typeof unpacked === 'string') return { action: 'fail', code: 'observe_failed', message: unpacked };
    if (unpacked === null) return { action: 'none' };
    if (fact.type !== 'directory' && fact.type !== 'absent') {
      return { action: 'release', reason: `${path} is no longer a directory` };
    }
    const stays = unpacked.differences.filter(({ how }) => how === 'changed' || how === 'unreachable');
    return {
      action: 'remove',
      changes: [],
      steps: [
        {
          do: 'remove-unpacked',
          path,
          spares: sparesOf(path, unpacked, context),
          keepsDirectory: context.declares('path', path),
        },
      ],
      ...(stays.length === 0
        ? {}
        : { reason: `files that have changed stay: ${listOf(stays.map((one) => one.path))}` }),
    };
  },
});

/** Returns how a body's archive is unpacked. @param body of an `archive-unix`, which may be that of a removal */
export function archiveOf(
  body: object,
): ArchiveReading & { readonly path: string; readonly content: SourceFile | null } {
  const typed = body as ArchiveBody;
  return { path: typed.path, content: wantedFile(typed), format: formatOf(typed) ?? 'tar', strip: typed.strip ?? 0 };
}

/** Returns the format that a body says or that the name of its archive tells; null for none. */
const formatOf = ({ format, source, url }: Pick<ArchiveBody, 'format' | 'source' | 'url'>): ArchiveFormat | null =>
  format ?? formatOfName(source ?? url ?? '');

function checkArchive(body: ArchiveBody): readonly BodyProblem[] {
  const { source, url, sha256 } = body;
  if (source == null && url == null) {
    return [{ path: '', message: 'archive-unix needs source, a file beside the module, or url with sha256' }];
  }
  const problems = checkContent({ source: source ?? null, url: url ?? null, sha256: sha256 ?? null });
  if (problems.length > 0 || formatOf(body) !== null) return problems;
  const message = `the name ${source ?? url} does not tell the format; write format: ${ARCHIVE_FORMATS.join(', ')}`;
  return [{ path: source == null ? '/url' : '/source', message }];
}

function problemOfProgram(
  argv: readonly [string, ...string[]],
  end: Extract<CommandEnd, { how: 'not-started' }>,
): ArchiveHave['program'] {
  const [name] = argv;
  if (!end.missing)
    return { missing: false, ...commandFailure({ argv }, { end, stdout: '', stderr: '', truncated: false }) };
  const message = `${name} is needed to unpack the archive, and is not installed; declare its package before it`;
  return { missing: true, code: 'command_missing', message };
}

function changesOfNew(want: ArchiveBody, archive: SourceFile): readonly FieldChange[] {
  const { owner, group } = want;
  return [
    { field: 'archive', before: null, after: nameOfSource(archive) },
    ...(owner == null ? [] : [{ field: 'owner', before: null, after: owner }]),
    ...(group == null ? [] : [{ field: 'group', before: null, after: group }]),
  ];
}

interface Compared {
  readonly archive: SourceFile;
  readonly format: ArchiveFormat;
  readonly unpacked: Unpacked;
}

function changesOf(
  { path, strip }: ArchiveBody,
  { archive, format, unpacked }: Compared,
  context: PlanContext,
): readonly FieldChange[] {
  const isOther = unpacked.sha256 !== archive.sha256;
  const wantedStrip = strip ?? 0;
  const changes: FieldChange[] = [
    ...(isOther ? [{ field: 'archive', before: shortDigest(unpacked), after: nameOfSource(archive) }] : []),
    ...(unpacked.strip === wantedStrip
      ? []
      : [{ field: 'strip', before: String(unpacked.strip), after: String(wantedStrip) }]),
    ...(unpacked.format === format ? [] : [{ field: 'format', before: unpacked.format, after: format }]),
  ];
  const differences = unpacked.differences.filter((one) => !belongsToOther(path, one.path, context));
  if (differences.length > 0) {
    const before = listOf(differences.map((one) => `${one.path} ${WORDS[one.how]}`));
    changes.push({ field: 'files', before, after: 'as in the archive' });
  } else if (!unpacked.isComplete && changes.length === 0) {
    changes.push({ field: 'files', before: 'an apply was interrupted', after: 'as in the archive' });
  }
  return changes;
}

const WORDS = {
  missing: 'is missing',
  changed: 'has changed',
  mode: 'has another mode',
  owner: 'has another owner',
  unreachable: 'cannot be looked at',
} as const;

/** Names in a list of a plan. */
const SHOWN = 5;

function listOf(names: readonly string[]): string {
  const more = names.length > SHOWN ? ` and ${names.length - SHOWN} more` : '';
  return `${names
    .slice(0, SHOWN)
    .join(', ')
    .replaceAll(/\p{Cc}/gu, '?')}${more}`;
}

/** True for a path that another resource declares, such as a configuration that the archive brings a first version of. */
const belongsToOther = (directory: string, path: string, context: PlanContext): boolean =>
  ['file-unix', 'symlink-unix', 'directory-unix'].some((kind) =>
    context.declares('path', `${directory}/${path}`, kind),
  ) || context.comesLater('path', `${directory}/${path}`);

const sparesOf = (directory: string, unpacked: UnpackedFact, context: PlanContext): readonly string[] =>
  unpacked === null || typeof unpacked === 'string'
    ? []
    : unpacked.paths.filter((path) => belongsToOther(directory, path, context));

/** Returns why another user's directory cannot take what is unpacked; null when it can. */
function ownerInTheWay(
  { path, owner }: ArchiveBody,
  { uid }: Extract<PathFact, { type: 'directory' }>,
  { accounts }: PlanContext,
): string | null {
  const { own } = accounts;
  const wanted = owner == null ? own.uid : accounts.uid(owner);
  if (uid === 0 || uid === own.uid || wanted === undefined || uid === wanted) return null;
  return refusalOfOwner(path, accounts.userName(uid));
}
