/** Programs that stay open, so that an apply that removes their files can still be undone with them. */
import { openSync } from 'node:fs';
import { environmentOf, findProgram } from './launch.js';

/** The programs that the undo of an apply starts. */
const PROGRAMS = [
  ...['cp', 'ls', 'systemctl', 'useradd', 'userdel', 'usermod', 'groupadd', 'groupdel', 'groupmod', 'gpasswd'],
  ...['chpasswd', 'chage'],
];

export class HeldPrograms {
  private readonly paths = new Map<string, string>();

  /** Opens the programs that this machine has, until the end of the process. */
  constructor(names: readonly string[] = PROGRAMS) {
    if (process.platform !== 'linux') return;
    for (const name of names) {
      try {
        const program = findProgram(name, environmentOf({}));
        if (typeof program === 'string') this.paths.set(name, `/proc/${process.pid}/fd/${openSync(program, 'r')}`);
      } catch {
        // A program that only others may read is not held.
      }
    }
  }

  /** Returns a path that starts the program although its file may be gone; undefined for one that is not held. */
  pathOf(name: string): string | undefined {
    return this.paths.get(name);
  }

  /** Returns the path of the program where it is installed, else that of the held one, else the name. */
  find(name: string): string {
    const program = findProgram(name, environmentOf({}));
    return typeof program === 'string' ? program : (this.pathOf(name) ?? name);
  }
}
