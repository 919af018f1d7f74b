/** What there is to say of a backup that was made, as it goes over the control socket. */
import * as Type from 'typebox';
import { closed } from '../../src/kernel/schema.js';

export const BackupReportSchema = closed({
  file: Type.String(),
  bytes: Type.Integer(),
  sha256: Type.String(),
  schema: Type.Integer(),
  /** Number of the last audit event in it, and its hash; 0 and '' when there is none. */
  last_seq: Type.Integer(),
  last_hash: Type.String(),
  /** Paths of key files that belong to it and are not in it. */
  keys: Type.Array(Type.String()),
});
export type BackupReport = Type.Static<typeof BackupReportSchema>;
