/** Commands that change users and groups of Linux with the `shadow` tools; each value is a separate argument. */
import type { RunStep } from '../host.js';
import type { UserSettings } from './unix-user-difference.js';

const run = (program: string, ...args: readonly string[]): RunStep => ({
  do: 'run',
  command: { argv: [program, ...args] },
});

/**
 * Creates a user without a password. An ordinary user gets a home directory with the files of `/etc/skel`; a system account gets
 * none, whatever the defaults of the system are.
 */
export const createLinuxUser = (name: string, settings: UserSettings, isSystem: boolean): readonly RunStep[] => [
  run('useradd', ...(isSystem ? ['-r', '-M'] : ['-m']), ...optionsOf(settings, true), '--', name),
];

export const changeLinuxUser = (name: string, settings: UserSettings): readonly RunStep[] => [
  run('usermod', ...optionsOf(settings, false), '--', name),
];

/** Keeps the home directory (no `-r`), and fails for a user who is logged in (no `-f`). */
export const removeLinuxUser = (name: string): RunStep => run('userdel', '--', name);

export const createLinuxGroup = (name: string, gid: number | null): readonly RunStep[] => [
  run('groupadd', ...(gid === null ? [] : ['-g', String(gid)]), '--', name),
];

export const changeLinuxGroup = (name: string, gid: number): readonly RunStep[] => [
  run('groupmod', '-g', String(gid), '--', name),
];

export const removeLinuxGroup = (name: string): readonly RunStep[] => [run('groupdel', '--', name)];

/** Recreates a group that was deleted with its user; exit status 9 means that it still exists. */
export const restoreLinuxGroup = (name: string, gid: number): RunStep => ({
  ...run('groupadd', '-g', String(gid), '--', name),
  ok: [0, 9],
});

/** Sets the hash of a password, which travels on standard input, so that other users cannot see it. */
export const setPasswordHash = (name: string, hash: string): RunStep => ({
  do: 'run',
  command: { argv: ['chpasswd', '-e'], input: `${name}:${hash}\n` },
});

function optionsOf({ uid, group, groups, home, shell, comment }: UserSettings, isNew: boolean): readonly string[] {
  return [
    ...(uid === null ? [] : ['-u', String(uid)]),
    ...(group === null ? [] : ['-g', group]),
    ...(groups === null || (isNew && groups.length === 0) ? [] : ['-G', groups.join(',')]),
    ...(home === null ? [] : ['-d', home]),
    ...(shell === null ? [] : ['-s', shell]),
    ...(comment === null ? [] : ['-c', comment]),
  ];
}
