/** Absences: something is not there after an apply, whoever made it. Each is a kind in the family of what is absent. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { absenceOf, WITH_CONTENT } from './absence-name.js';
import { authorizedKeyUnix } from './authorized-key-unix.js';
import { blockName, blockUnix } from './block-unix.js';
import { cronUnix } from './cron-unix.js';
import { directoryUnix } from './directory-unix.js';
import { directoryWindows } from './directory-windows.js';
import { FORGET_UNIT, fileUnix } from './file-unix.js';
import { fileWindows } from './file-windows.js';
import { groupUnix } from './group-unix.js';
import { groupWindows } from './group-windows.js';
import type { PathFact } from './host.js';
import { hostEntryName, hostEntryUnix } from './host-entry-unix.js';
import type { Body, BodyProblem, Decision, PlanContext, ResourceKind } from './kind.js';
import { absentLine, lineUnix } from './line-unix.js';
import { mountLinux } from './mount-linux.js';
import { packageApt, purging } from './package-apt.js';
import { packageBrew } from './package-brew.js';
import { packageChoco } from './package-choco.js';
import { packageDnf } from './package-dnf.js';
import { packageWinget } from './package-winget.js';
import type { PackageHave } from './packages/indexed-package.js';
import { repositoryApt } from './repository-apt.js';
import { repositoryDnf } from './repository-dnf.js';
import { serviceOpenrc } from './service-openrc.js';
import { serviceSystemd } from './service-systemd.js';
import { unitAt } from './services/systemd-unit-file.js';
import { settingName, settingUnix } from './setting-unix.js';
import { symlinkUnix } from './symlink-unix.js';
import { timerSystemd } from './timer-systemd.js';
import { checkUnixPath } from './unix/unix-metadata.js';
import { userUnix } from './user-unix.js';
import { userWindows } from './user-windows.js';
import { windowsIdentity, windowsPath } from './windows/windows-path.js';

type Absence = Partial<Pick<ResourceKind, 'check' | 'plan' | 'forbids'>> & {
  /** Schema of the body, where it is not the identity and further members. */
  readonly schema?: Type.TSchema;
  /** Changes the decision about a removal. */
  readonly alter?: (want: Body, have: unknown, removal: Decision) => Decision;
  /** Members beside the one that is the identity. */
  readonly members?: Readonly<Record<string, Type.TSchema>>;
};

/** Defines the absence of a kind. Unless it says otherwise, it plans what a removal of orch's own resource would do. */
function absent<B extends object, Have>(
  typed: ResourceKind<B, Have>,
  identity: 'path' | 'name',
  { members = {}, ...own }: Absence = {},
): ResourceKind {
  const kind = typed as unknown as ResourceKind;
  const { properties = {} }: { readonly properties?: Readonly<Record<string, Type.TSchema>> } = kind.schema;
  return {
    kind: absenceOf(kind.kind),
    absenceOf: kind,
    family: kind.family,
    ...(kind.isListed !== undefined && { isListed: kind.isListed }),
    platforms: kind.platforms,
    schema: own.schema ?? closed({ [identity]: properties[identity] ?? Type.String(), ...members }),
    check: own.check ?? ((body) => kind.check(body)),
    identity: (body, id) => kind.identity(body, id),
    requires: () => [],
    ...(kind.edits && { edits: kind.edits }),
    ...(own.forbids && { forbids: own.forbids }),
    ...(kind.batch !== undefined && { batch: kind.batch }),
    ...(kind.queried !== undefined && { queried: kind.queried }),
    ...(kind.thingsOf && { thingsOf: (host, wants) => kind.thingsOf?.(host, wants) ?? [] }),
    read: (host, wants) => kind.read(host, wants, 'removal'),
    exists: (have) => kind.exists(have),
    plan(want, have, context) {
      // In a plan, what an earlier removal takes is still there.
      const isTaken = context.purpose === 'plan' && context.removes(kind.family, kind.identity(want, null));
      if (isTaken) return { action: 'none' };
      if (own.plan) return own.plan(want, have, context);
      const decision = kind.planRemoval(want, have, context);
      if (decision.action !== 'release') return own.alter?.(want, have, decision) ?? decision;
      return { action: 'fail', code: 'removal_refused', message: decision.reason };
    },
    planRemoval: () => ({ action: 'release', reason: 'it may be there again' }),
    removes: () => false,
    ...(kind.keepsWithheld !== undefined && { keepsWithheld: kind.keepsWithheld }),
    ...(kind.explain && { explain: (...given) => kind.explain?.(...given) ?? UNEXPLAINED }),
    ...(kind.judge && { judge: async (...given) => (await kind.judge?.(...given)) ?? 'undone' }),
  };
}

const UNEXPLAINED = { code: 'command_failed', message: 'the command failed' } as const;

/** Paths of a platform. */
interface Paths {
  /** Returns a path as it is shown and changed. */
  readonly of: (path: string) => string;
  /** Returns the identity of an entry of a directory. */
  readonly in: (directory: string, name: string) => string;
}

const UNIX: Paths = { of: (path) => path, in: (directory, name) => `${directory}/${name}` };
const WINDOWS: Paths = { of: windowsPath, in: (directory, name) => windowsIdentity(`${directory}\\${name}`) };

type Present = Exclude<PathFact, { readonly type: 'absent' | 'unreadable' }>;

/** Plans the absence of something at a path. @param decide about a path with something there */
const noPath =
  (
    paths: Paths,
    decide: (path: string, have: Present, want: Body, context: PlanContext) => Decision,
  ): ResourceKind['plan'] =>
  (want, found, context) => {
    const have = found as PathFact;
    if (have.type === 'absent') return { action: 'none' };
    if (have.type === 'unreadable') return { action: 'fail', code: have.code, message: have.message };
    return decide(paths.of(String(want.path)), have, want, context);
  };

interface Unlinking {
  readonly directoryKind: string;
  /** What goes: a file or a link, or a link alone. */
  readonly expect: 'either' | 'symlink';
}

/** Plans that no link, and unless `expect` says otherwise no file, is at a path. */
const noEntry = (paths: Paths, { directoryKind, expect }: Unlinking): ResourceKind['plan'] =>
  noPath(paths, (path, have) => {
    const instead = (kind: string) => `write absent: {${kind}: {path: ${path}}}`;
    if (have.type === 'directory') return wrongType(`${path} is a directory; ${instead(directoryKind)}`);
    if (have.type === 'other') return wrongType(`${path} is a ${have.what}, not a file`);
    if (have.type === 'file' && expect === 'symlink') {
      return wrongType(`${path} is a file, not a link; ${instead(fileUnix.kind)}`);
    }
    const forget = unitAt(path) === null ? [] : [FORGET_UNIT];
    return { action: 'remove', changes: [], steps: [{ do: 'remove-file', path, expect }, ...forget] };
  });

/** Plans that no directory is at a path. */
const noDirectory = (paths: Paths): ResourceKind['plan'] =>
  noPath(paths, (path, have, want, context) => {
    if (have.type !== 'directory') {
      return wrongType(`${path} is a ${have.type === 'other' ? have.what : have.type}, not a directory`);
    }
    const left = have.entries?.filter((name) => !context.removes('path', paths.in(path, name)));
    if (left?.length === 0) return { action: 'remove', changes: [], steps: [{ do: 'remove-directory', path }] };
    if (want.recursive === true) {
      return { action: 'remove', changes: [], steps: [{ do: 'remove-tree', path }], reason: WITH_CONTENT };
    }
    const mend = paths === UNIX ? '; "recursive: true" removes it with everything in it' : '';
    return { action: 'fail', code: 'removal_refused', message: `${path} is not empty${mend}` };
  });

const wrongType = (message: string): Decision => ({ action: 'fail', code: 'wrong_type', message });

/** Refuses to remove directories of the system as a whole, which nothing brings back. */
function checkTree(body: { readonly path?: unknown; readonly recursive?: unknown }): readonly BodyProblem[] {
  if (body.recursive !== true || !/^\/[^/]*$/.test(String(body.path))) return [];
  return [{ path: '/recursive', message: `recursive is refused for ${String(body.path)}, a directory of the system` }];
}

const directory = directoryUnix as unknown as ResourceKind;

export const ABSENCES: readonly ResourceKind[] = [
  absent(fileUnix, 'path', { plan: noEntry(UNIX, { directoryKind: 'directory-unix', expect: 'either' }) }),
  absent(symlinkUnix, 'path', {
    check: (body) => checkUnixPath({ path: String(body.path) }),
    plan: noEntry(UNIX, { directoryKind: 'directory-unix', expect: 'symlink' }),
  }),
  absent(directoryUnix, 'path', {
    members: {
      recursive: optional(Type.Boolean({ description: 'True: with everything in it' })),
    },
    check: (body) => [...directory.check(body), ...checkTree(body)],
    plan: noDirectory(UNIX),
  }),
  absent(lineUnix, 'path', absentLine),
  absent(blockUnix, 'path', { schema: closed(blockName) }),
  absent(settingUnix, 'path', { schema: closed(settingName) }),
  absent(hostEntryUnix, 'name', { schema: closed(hostEntryName) }),
  absent(mountLinux, 'path'),
  absent(fileWindows, 'path', { plan: noEntry(WINDOWS, { directoryKind: 'directory-windows', expect: 'either' }) }),
  absent(directoryWindows, 'path', { plan: noDirectory(WINDOWS) }),
  absent(userUnix, 'name'),
  absent(cronUnix, 'name', { check: () => [] }),
  absent(authorizedKeyUnix, 'name', { schema: authorizedKeyUnix.schema }),
  absent(userWindows, 'name'),
  absent(groupUnix, 'name'),
  absent(groupWindows, 'name'),
  absent(packageApt, 'name', {
    members: { purge: optional(Type.Boolean({ description: 'True: with its configuration files' })) },
    alter: (want, have, removal) =>
      want.purge === true ? purging(String(want.name), have as PackageHave, removal) : removal,
  }),
  absent(packageDnf, 'name'),
  absent(repositoryApt, 'name', { check: () => [] }),
  absent(repositoryDnf, 'name', { check: () => [] }),
  absent(packageBrew, 'name'),
  absent(packageChoco, 'name'),
  absent(packageWinget, 'name'),
  absent(serviceSystemd, 'name'),
  absent(serviceOpenrc, 'name'),
  absent(timerSystemd, 'name', { check: () => [] }),
];
