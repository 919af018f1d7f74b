/** Applies that undo themselves: bounds, and what an agent has restored, in one shape on the link, in the store and in the API. */
import * as Type from 'typebox';
import { closed, nullable } from '../kernel/schema.js';
import { kindOfAbsence } from './absence-name.js';

/** Bounds of the time in which a machine has to come back after an apply, in seconds. */
export const CONFIRM_SECS = { minimum: 10, maximum: 3_600 } as const;

/** Maximum number of named resources, so that a report fits into a frame of the link. */
export const MAX_RESTORED_NAMES = 200;

export const RestoredSchema = closed({
  restored: Type.Integer({ minimum: 0, description: 'Number of resources that are as they were before the apply' }),
  not_restored: Type.Integer({ minimum: 0, description: 'Number of resources that could not be restored' }),
  resources: Type.Array(
    closed({
      kind: Type.String({ maxLength: 64, description: 'Kind of the resource, such as file-unix' }),
      identity: Type.String({ maxLength: 4_096, description: 'Path or name of the resource on the machine' }),
      reason: nullable(
        Type.String({ maxLength: 1_024, description: 'Why it could not be restored; null for one that was' }),
      ),
    }),
    {
      maxItems: MAX_RESTORED_NAMES,
      description: `At most ${MAX_RESTORED_NAMES} of them; those that could not be restored come first`,
    },
  ),
});
export type Restored = Type.Static<typeof RestoredSchema>;

/** Kinds whose resources the agent can restore. */
export const RESTORABLE_KINDS = [
  'file-unix',
  'directory-unix',
  'symlink-unix',
  'line-unix',
  'block-unix',
  'setting-unix',
  'host-entry-unix',
  'sysctl-linux',
  'hostname-linux',
  'timezone-linux',
  'locale-linux',
  'kernel-module-linux',
  'alternatives-linux',
  'mount-linux',
  'service-systemd',
  'service-openrc',
  'user-unix',
  'group-unix',
  'authorized-key-unix',
  'cron-unix',
  'git-unix',
  'archive-unix',
  'repository-apt',
  'repository-dnf',
  'timer-systemd',
] as const;
export type RestorableKind = (typeof RESTORABLE_KINDS)[number];

/** True for kinds of resources that the agent can restore, without absences. */
export const isRestorable = (kind: string): kind is RestorableKind => RESTORABLE_KINDS.some((known) => known === kind);

/** Returns why resources of a kind cannot be restored; null for those that can. */
export function whyNotRestorable(kind: string): string | null {
  if (isRestorable(kindOfAbsence(kind))) return null;
  if (kind === 'script') return 'what a script has done cannot be undone';
  return kindOfAbsence(kind).startsWith('package-')
    ? 'packages stay as they are'
    : 'orch cannot restore resources of this kind';
}
