-- Functions of Spark's names, so that DuckDB understands the documented views and conf/questions.sql.
-- Read once per connection, before them: duckdb -init conf/duckdb.sql
SET TimeZone = 'UTC';
SET default_null_order = 'nulls_first_on_asc_last_on_desc';
CREATE OR REPLACE MACRO explode(list) AS unnest(list);
CREATE OR REPLACE MACRO size(list) AS len(list);
CREATE OR REPLACE MACRO slice(list, first, many) AS list[first : first + many - 1];
CREATE OR REPLACE MACRO array_join(list, between) AS array_to_string(list, between);
CREATE OR REPLACE MACRO array_max(list) AS list_max(list);
CREATE OR REPLACE MACRO array_repeat(item, many) AS list_transform(range(many), lambda i: item);
CREATE OR REPLACE MACRO array_except(list, others) AS list_filter(list, lambda x: NOT list_contains(others, x));
CREATE OR REPLACE MACRO timestamp_millis(milliseconds) AS make_timestamptz(milliseconds * 1000);
CREATE OR REPLACE MACRO unix_millis(moment) AS epoch_ms(moment);
