/** Users and groups of Linux are changed with the tools of `shadow`: every value is an argument of its own. */
import type { RunStep } from '../host.js';
import type { UserSettings } from './unix-user-difference.js';

const run = (program: string, ...args: readonly string[]): RunStep => ({
  do: 'run',
  command: { argv: [program, ...args] },
});

/**
 * A new user has no password and so cannot log in with one. An ordinary one gets its home directory, with the files of
 * `/etc/skel`; a system account gets none, whatever the system's own habit is.
 */
export const createLinuxUser = (name: string, settings: UserSettings, isSystem: boolean): readonly RunStep[] => [
  run('useradd', ...(isSystem ? ['-r', '-M'] : ['-m']), ...optionsOf(settings, true), '--', name),
];

export const changeLinuxUser = (name: string, settings: UserSettings): readonly RunStep[] => [
  run('usermod', ...optionsOf(settings, false), '--', name),
];

/** Without `-r`: the home directory stays. Without `-f`: nobody is cut off who is at work. */
export const removeLinuxUser = (name: string): RunStep => run('userdel', '--', name);

export const createLinuxGroup = (name: string, gid: number | null): readonly RunStep[] => [
  run('groupadd', ...(gid === null ? [] : ['-g', String(gid)]), '--', name),
];

export const changeLinuxGroup = (name: string, gid: number): readonly RunStep[] => [
  run('groupmod', '-g', String(gid), '--', name),
];

export const removeLinuxGroup = (name: string): readonly RunStep[] => [run('groupdel', '--', name)];

/** Brings a group back that went with its user; 9 says that it did not go. */
export const restoreLinuxGroup = (name: string, gid: number): RunStep => ({
  ...run('groupadd', '-g', String(gid), '--', name),
  ok: [0, 9],
});

function optionsOf({ uid, group, groups, home, shell }: UserSettings, isNew: boolean): readonly string[] {
  return [
    ...(uid === null ? [] : ['-u', String(uid)]),
    ...(group === null ? [] : ['-g', group]),
    ...(groups === null || (isNew && groups.length === 0) ? [] : ['-G', groups.join(',')]),
    ...(home === null ? [] : ['-d', home]),
    ...(shell === null ? [] : ['-s', shell]),
  ];
}
