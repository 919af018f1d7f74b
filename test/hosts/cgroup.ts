/** The control groups that keep the processes of one host apart from those of the next. */
import { existsSync, mkdirSync } from 'node:fs';

/** The hierarchies in which systemd sorts processes: one on pure cgroup v2, up to two on v1 and hybrid machines. */
export function cgroupRoots(): readonly string[] {
  const candidates = ['/sys/fs/cgroup', '/sys/fs/cgroup/systemd', '/sys/fs/cgroup/unified'];
  return candidates.filter((directory) => existsSync(`${directory}/cgroup.procs`));
}

/** Creates the group where it is missing and returns the command that joins it before it becomes `argv`. */
export function inCgroup(path: string, argv: readonly string[]): readonly string[] {
  const doors = cgroupRoots().map((root) => {
    mkdirSync(`${root}/${path}`, { recursive: true });
    return `${root}/${path}/cgroup.procs`;
  });
  const joins = doors.map((door) => `echo $$ >${door}`);
  return ['sh', '-ec', [...joins, 'exec "$@"'].join('\n'), 'sh', ...argv];
}
