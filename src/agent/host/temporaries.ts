/** Names of temporary files and directories, and the removal of leftovers of crashed runs. */
import { randomUUID } from 'node:crypto';
import { lstatSync, readdirSync, rmdirSync, type Stats, unlinkSync } from 'node:fs';
import { mayBeInUse } from './alive.js';
import type { HeldEntry } from './safe-walk.js';

/** Maximum bytes of a file name. */
const NAME_MAX = 255;
const PATTERN = /^\..*\.orch-([0-9a-f]{6})[0-9a-f]{10}\.dpkg-tmp$/s;

export class Temporaries {
  private readonly checked = new Set<string>();

  /** Returns `.NAME.orch-<16 hex>.dpkg-tmp`, a form that run-parts, logrotate and similar tools ignore. */
  nameFor(name: string): string {
    const owner = process.pid.toString(16).padStart(6, '0').slice(-6);
    // The last digits of a random UUID are all random, and Node draws the randomness of many at once.
    const suffix = `.orch-${owner}${randomUUID().slice(-10)}.dpkg-tmp`;
    return `.${shorten(name, NAME_MAX - 1 - suffix.length)}${suffix}`;
  }

  /** Removes temporary files and directories of dead processes from a directory; checks each directory once. */
  removeDead(directory: HeldEntry): void {
    const { dev, ino } = directory.stats;
    const key = `${dev}:${ino}`;
    if (this.checked.has(key)) return;
    this.checked.add(key);
    for (const name of namesIn(directory)) {
      const owner = PATTERN.exec(name)?.[1];
      if (owner !== undefined) removeIfLeft(`${directory.at}/${name}`, Number.parseInt(owner, 16));
    }
  }
}

/** Cuts a name to that many bytes of UTF-8 at a character boundary. */
function shorten(name: string, bytes: number): string {
  if (Buffer.byteLength(name) <= bytes) return name;
  const characters = [...name];
  while (Buffer.byteLength(characters.join('')) > bytes) characters.pop();
  return characters.join('');
}

function namesIn(directory: HeldEntry): readonly string[] {
  try {
    return readdirSync(`${directory.at}/.`);
  } catch {
    // A directory that may be written but not listed is not swept.
    return [];
  }
}

function removeIfLeft(at: string, owner: number): void {
  if (owner !== process.pid && mayBeInUse(owner)) return;
  try {
    const stats = lstatSync(at);
    // A file of an earlier release may have its declared owner already.
    if (stats.isFile()) unlinkSync(at);
    else if (stats.isDirectory() && isOwn(stats)) removeRoom(at);
  } catch {
    // Another process was faster, or this one may not remove it.
  }
}

/**
 * Removes a private directory of a run with what that run made in it. Anything else in it stays: another user could have given
 * the name to a directory that holds other files.
 */
function removeRoom(at: string): void {
  for (const name of readdirSync(at)) {
    if (!PATTERN.test(name)) continue;
    if (lstatSync(`${at}/${name}`).isDirectory()) rmdirSync(`${at}/${name}`);
    else unlinkSync(`${at}/${name}`);
  }
  rmdirSync(at);
}

const isOwn = ({ uid }: Stats): boolean => process.geteuid === undefined || uid === process.geteuid();
