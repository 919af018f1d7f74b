/** Installs and removes a unit: a package brings its own, and elsewhere it is written where the operator's units are. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile, syncDirectory } from '../disk/durable.js';
import { Fault, messageOf } from '../kernel/fault.js';
import { lastLogLines, type Systemctl } from './systemd.js';

export interface UnitPlaces {
  /** Directory of the operator's own units, which override those of packages. */
  readonly own: string;
  /** Directory of the units of packages. */
  readonly packaged: string;
}

export const UNIT_PLACES: UnitPlaces = { own: '/etc/systemd/system', packaged: '/usr/lib/systemd/system' };

export interface ServiceTools {
  readonly systemctl: Systemctl;
  readonly places: UnitPlaces;
}

/**
 * Puts a unit in place, unless the package's own one has the same text, and starts it now and at each boot.
 * @returns the path of the unit that counts
 * @throws Fault `service_failed` with what systemd says
 */
export async function startUnit({ systemctl, places }: ServiceTools, name: string, text: string): Promise<string> {
  const own = join(places.own, name);
  const packaged = join(places.packaged, name);
  const isPackaged = existsSync(packaged) && readFileSync(packaged, 'utf8') === text;
  return attempt(name, async () => {
    if (isPackaged) rmSync(own, { force: true });
    else replaceFile(own, text, { mode: 0o644 });
    await systemctl('daemon-reload');
    await systemctl('enable', name);
    await systemctl('restart', name);
    return isPackaged ? packaged : own;
  });
}

/**
 * Stops a unit, now and for the next boot, and deletes the operator's one.
 * @returns the path of the unit that was stopped; null without one
 * @throws Fault `service_failed`
 */
export async function stopUnit({ systemctl, places }: ServiceTools, name: string): Promise<string | null> {
  const [path] = [places.own, places.packaged].map((place) => join(place, name)).filter((file) => existsSync(file));
  if (path === undefined) return null;
  await attempt(name, async () => {
    await systemctl('disable', '--now', name);
    rmSync(join(places.own, name), { force: true });
    syncDirectory(places.own);
    await systemctl('daemon-reload');
  });
  return path;
}

async function attempt<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new Fault('service_failed', messageOf(cause), { hint: `see: journalctl -u ${name}`, cause });
  }
}

/** Milliseconds between two looks, and before a service counts as not starting. */
const LOOK_MS = 200;
const PATIENCE_MS = 60_000;

/**
 * Waits until `look` returns something. Throws `service_failed` with the end of the log when the unit has failed, or after a minute.
 */
export async function waitFor<T>(systemctl: Systemctl, name: string, look: () => T | null): Promise<T> {
  const end = performance.now() + PATIENCE_MS;
  let restarts: string | null = null;
  for (;;) {
    const found = look();
    if (found !== null) return found;
    const shown = await systemctl('show', '--property=ActiveState,NRestarts', name).catch(() => '');
    const state = /^ActiveState=(.*)$/m.exec(shown)?.[1] ?? '';
    const now = /^NRestarts=(.*)$/m.exec(shown)?.[1] ?? '';
    restarts ??= now;
    if (state === 'failed' || now !== restarts || performance.now() > end) throw await notReady(name, state);
    await new Promise((done) => setTimeout(done, LOOK_MS));
  }
}

async function notReady(name: string, state: string): Promise<Fault> {
  const log = await lastLogLines(name, 5);
  const said = log.length === 0 ? '' : `; its log ends with:\n${log.join('\n')}`;
  return new Fault('service_failed', `${name} does not get ready (${state || 'unknown to systemd'})${said}`, {
    hint: `the whole log: journalctl -u ${name}; it is started again until you run: systemctl disable --now ${name}`,
  });
}
