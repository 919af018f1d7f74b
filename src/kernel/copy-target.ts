/** Targets of copies: what an agent reads or writes for `orch cp`. */
import * as Type from 'typebox';
import { closed } from './schema.js';

/** Maximum characters of a path. */
export const COPY_PATH_MAX = 4096;

/** Control characters are refused, because the path is shown in messages and in the audit log. */
export const CopyPathSchema = Type.String({
  pattern: '^/[^\\u0000-\\u001f\\u007f]*$',
  maxLength: COPY_PATH_MAX,
  description: 'Absolute path on the machine',
});

export const COPY_DIRECTIONS = ['read', 'write'] as const;
export type CopyDirection = (typeof COPY_DIRECTIONS)[number];

export const CopyTargetSchema = closed({ copy: Type.Enum(COPY_DIRECTIONS), at: CopyPathSchema });
export type CopyTarget = Type.Static<typeof CopyTargetSchema>;
