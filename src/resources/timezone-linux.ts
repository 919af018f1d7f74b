/** `timezone-linux`: the time zone of the machine. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';
import type { PathFact, Step } from './host.js';
import { type Decision, defineResource, type FieldChange } from './kind.js';

const schema = closed({
  name: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9_+-]*(?:/[A-Za-z0-9][A-Za-z0-9_+-]*)*$',
    maxLength: 100,
    description: 'Name of the zone, such as "Europe/Berlin" or "UTC"',
  }),
});

type TimezoneBody = Type.Static<typeof schema>;

interface TimezoneHave {
  readonly link: PathFact;
  /** The rules of the wanted zone. */
  readonly zone: PathFact;
  /** The name of the zone in a file of its own, which only Debian and its derivatives have. */
  readonly named: PathFact;
}

/** The link to the rules of the zone, and the identity: a machine has one zone. */
const LINK = '/etc/localtime';
export const TIMEZONE_FILES = [LINK, '/etc/timezone'] as const;
const [, NAMED] = TIMEZONE_FILES;
const ZONES = '/usr/share/zoneinfo/';

export const timezoneLinux = defineResource<TimezoneBody, TimezoneHave>({
  kind: 'timezone-linux',
  family: 'path',
  platforms: ['linux'],
  schema,
  check: () => [],
  identity: () => LINK,
  requires: () => [],

  read: (host, wants) =>
    wants.map(({ name }) => {
      const at = (path: string, content = false) => ({ path, content, entries: false });
      const [link = UNREAD, zone = UNREAD, named = UNREAD] = host.observe([
        at(LINK),
        at(ZONES + name),
        at(NAMED, true),
      ]);
      return { link, zone, named };
    }),

  // A machine always has a zone.
  exists: () => true,

  plan({ name }, { link, zone, named }, { mayAppear }): Decision {
    for (const fact of [link, zone, named]) {
      if (fact.type === 'unreadable') return { action: 'fail', code: fact.code, message: fact.message };
    }
    if (link.type === 'directory' || link.type === 'other') {
      return { action: 'fail', code: 'wrong_type', message: `${LINK} is no link and no file; remove it` };
    }
    if (zone.type !== 'file' && zone.type !== 'symlink' && !mayAppear) {
      const message = `there is no time zone ${name} in ${ZONES}; correct the name, or install the package tzdata before`;
      return { action: 'fail', code: 'value_unknown', message };
    }
    const present = zoneOf(link);
    const changes: FieldChange[] = [];
    const steps: Step[] = [];
    if (present !== name) {
      changes.push({ field: 'name', before: present, after: name });
      const target = `${ZONES}${name}`;
      steps.push({ do: 'make-link', path: LINK, target, owner: null, group: null, replace: true });
    }
    const kept = named.type === 'file' && named.content.kind === 'text' ? named.content.text : null;
    if (named.type === 'file' && kept?.trim() !== name) {
      changes.push({ field: NAMED, before: kept?.trim() ?? null, after: name });
      steps.push({ do: 'write-file', path: NAMED, content: `${name}\n`, owner: null, group: null, mode: null });
    }
    if (changes.length === 0) return { action: 'none' };
    return { action: 'update', changes, steps, reason: 'programs that run keep the old zone until they start again' };
  },

  planRemoval: () => ({ action: 'release', reason: 'a machine keeps its time zone' }),
  removes: () => false,
});

const UNREAD: PathFact = { type: 'unreadable', code: 'observe_failed', message: 'the time zone was not read' };

/** Returns the zone that a link leads to; for a file, which has no name, a description; null for none, which means UTC. */
function zoneOf(link: PathFact): string | null {
  if (link.type === 'file') return 'a file';
  if (link.type !== 'symlink') return null;
  const at = link.target.indexOf(ZONES);
  return at < 0 ? link.target : link.target.slice(at + ZONES.length);
}
