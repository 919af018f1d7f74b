#!/usr/bin/env node
/** Composition root of the command: hands the process to the command line, and the programs to it as functions. */
import { runCli } from '../src/cli/run.js';
import { programs } from './programs.js';
import { systemClock } from './system-clock.js';

const { argv, env, stdin, stdout, stderr } = process;

process.exitCode = await runCli({ argv: argv.slice(2), env, stdin, stdout, stderr, programs, clock: systemClock });
