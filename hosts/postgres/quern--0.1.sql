-- SPDX-License-Identifier: Apache-2.0
\echo Use "CREATE EXTENSION quern" to load this file. \quit

CREATE FUNCTION quern_version() RETURNS text
  AS 'MODULE_PATHNAME', 'quern_pg_version' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION quern_version() IS 'version of libquern; calling it loads the extension into the session';
