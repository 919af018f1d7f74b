/**
 * Databases of tests on PostgreSQL. A database is a copy of a template, and is emptied and used again by later tests, because a new one
 * costs more than most tests. Each worker of vitest has its own.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { postgresPrograms } from './postgres.js';

/** Name of the database that those of the tests are copies of. */
export const TEMPLATE = 'orch_template';

/** Tables with more bytes are truncated, which takes longer than to delete a few rows. */
const LARGE = 256 * 1024;

/** Adds to the template what makes one of its copies like new: the rows that the migrations made, and a function. */
export const RESET_FUNCTION = `
  create schema lab;
  do $$ declare one text; begin
    for one in select tablename from pg_tables where schemaname = 'orch' loop
      execute format('create table lab.%I as table orch.%I', one, one);
    end loop;
  end $$;
  create function lab.reset() returns void language plpgsql as $$
  declare one text;
  begin
    perform pg_terminate_backend(pid, 5000) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend';
    set local session_replication_role = replica;
    for one in select tablename from pg_tables where schemaname = 'orch' loop
      if pg_relation_size(format('orch.%I', one)) > ${LARGE} then execute format('truncate orch.%I cascade', one);
      else execute format('delete from orch.%I', one); end if;
    end loop;
    for one in select tablename from pg_tables where schemaname = 'lab' loop
      execute format('insert into orch.%I overriding system value select * from lab.%I', one, one);
    end loop;
    for one in select sequencename from pg_sequences where schemaname = 'orch' loop
      execute format('alter sequence orch.%I restart', one);
    end loop;
  end $$`;

const inUse = new Set<number>();

/** Returns the URL of a database like the template, for use until `freeDatabase`. */
export function takeDatabase(): string {
  let number = 0;
  while (inUse.has(number)) number += 1;
  inUse.add(number);
  const name = `w${process.env.VITEST_POOL_ID ?? process.pid}_${number}`;
  const url = serverUrl().replace(/\/[^/]*$/, `/${name}`);
  // It fails for a database that does not exist, or was spoiled.
  if (psql(url, ['select lab.reset()']).status === 0) return url;
  copyDatabase(serverUrl().replace(/\/[^/]*$/, `/${TEMPLATE}`), url);
  return url;
}

/** Makes a database anew, as a copy of another one that nothing uses. */
export function copyDatabase(from: string, to: string): void {
  dropDatabase(to);
  const { status, stderr } = psql(serverUrl(), [`create database "${nameOf(to)}" template "${nameOf(from)}"`]);
  if (status !== 0) throw new Error(`the database ${to} cannot be made: ${stderr}`);
}

function dropDatabase(url: string): void {
  psql(serverUrl(), [`drop database if exists "${nameOf(url)}" with (force)`]);
}

const nameOf = (url: string): string => url.slice(url.lastIndexOf('/') + 1);

/** Gives a database back. Nothing may use it afterwards. */
export const freeDatabase = (url: string): void => void inUse.delete(Number(/_(\d+)$/.exec(url)?.[1]));

/** Marks a database whose schema a test changes, so that no later test gets it. */
export function spoilDatabase(url: string): void {
  psql(url, ['drop function if exists lab.reset']);
}

/** Runs statements with the tables of the store in reach, each in a transaction of its own, up to the first that fails. */
export function psql(
  url: string,
  statements: readonly string[],
): { status: number | null; stdout: string; stderr: string } {
  const words = [
    '-X',
    '-q',
    '-A',
    '-t',
    '-v',
    'ON_ERROR_STOP=1',
    '-d',
    url,
    ...statements.flatMap((one) => ['-c', one]),
  ];
  return spawnSync(join(postgresPrograms ?? '', 'psql'), words, {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, PGOPTIONS: '-c search_path=orch -c client_min_messages=warning' },
    maxBuffer: 256 * 1024 * 1024,
  });
}

function serverUrl(): string {
  const url = process.env.ORCH_TEST_POSTGRES;
  if (url === undefined) throw new Error('ORCH_TEST_POSTGRES names no server: the setup of the tests did not run');
  return url;
}
