#!/usr/bin/env node
/** Composition root of the command: hands the process to the command line, and the programs to it as functions. */
import { type CliOptions, runCli } from '../src/cli/run.js';
import { programs } from './programs.js';
import { systemClock } from './system-clock.js';

// What Node would say of a program whose end never came.
process.exitCode = 13;
const options: CliOptions = {
  argv: process.argv.slice(2),
  env: process.env,
  // Node opens a stream when it is asked for.
  get stdin() {
    return process.stdin;
  },
  get stdout() {
    return process.stdout;
  },
  get stderr() {
    return process.stderr;
  },
  programs,
  clock: systemClock,
};
void runCli(options).then((status) => {
  process.exitCode = status;
});
