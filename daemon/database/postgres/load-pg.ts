/** Loads `pg`, an optional dependency, only when a store is on PostgreSQL. */
import type Pg from 'pg';
import { Fault, messageOf } from '../../../src/kernel/fault.js';

export type PgModule = typeof Pg;

/** Returns the library. Throws `native_module_missing` when it is not installed. */
export async function loadPg(): Promise<PgModule> {
  try {
    return ((await import('pg')) as { readonly default: PgModule }).default;
  } catch (cause) {
    throw new Fault('native_module_missing', `pg cannot be loaded: ${messageOf(cause)}`, {
      hint: 'a store on PostgreSQL needs this package; install orch with its optional dependencies',
      cause,
    });
  }
}
