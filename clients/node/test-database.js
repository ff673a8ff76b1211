"use strict";
/**
 * Test equipment: a connection to PostgreSQL with the interface of pg's client, by pg itself if it is installed, otherwise by Python's
 * psycopg2 in a process of its own.
 */
const { spawn } = require("node:child_process");
const { createInterface } = require("node:readline");

const BRIDGE = `
import json, os, re, sys, psycopg2
database = psycopg2.connect(os.environ["POSTGRES"])
database.autocommit = True
for line in sys.stdin:
    sql, values = json.loads(line)
    cursor = database.cursor()
    try:
        cursor.execute(re.sub(r"\\$(\\d+)", r"%(p\\1)s", sql), {f"p{n + 1}": value for n, value in enumerate(values)})
        rows = [dict(zip([column.name for column in cursor.description], row)) for row in cursor.fetchall()] if cursor.description else []
        print(json.dumps({"rows": rows}), flush=True)
    except psycopg2.Error as error:
        print(json.dumps({"error": str(error)}), flush=True)
`;

function bridge() {
  const python = spawn("/usr/bin/python3", ["-c", BRIDGE], { stdio: ["pipe", "pipe", "inherit"] });
  const answers = createInterface({ input: python.stdout })[Symbol.asyncIterator]();
  const ended = new Promise((resolve) => python.on("exit", resolve));
  return {
    async query(sql, values = []) {
      python.stdin.write(JSON.stringify([sql, values]) + "\n");
      const { value } = await answers.next();
      const answer = JSON.parse(value);
      if (answer.error) throw new Error(answer.error);
      return answer;
    },
    async end() {
      python.stdin.end();
      await ended;
    },
  };
}

async function open() {
  let pg;
  try {
    pg = require("pg");
  } catch {
    return bridge();
  }
  const client = new pg.Client({ host: decodeURIComponent(process.env.POSTGRES.split("host=")[1]), user: "postgres", database: "postgres" });
  await client.connect();
  return client;
}

/** A connection whose tables are in a schema of this name. */
exports.connectDatabase = async (schema) => {
  const database = await open();
  await database.query(`CREATE SCHEMA IF NOT EXISTS "${schema}"`);
  await database.query(`SET search_path TO "${schema}"`);
  return database;
};
