-- houkai schema 1. application_id is 'hkai', user_version the number of the last file applied.
-- Times are epoch seconds in UTC. NULL means absent.

create table meta(
  key   text primary key,
  value any
) strict, without rowid;

create table model(
  pk          integer primary key,
  name        text not null,
  dim         integer not null check (dim > 0),
  fingerprint text not null unique
) strict;

create table collection(
  pk         integer primary key,
  name       text not null unique,
  created_at real not null
) strict;

-- pk is file-local and stable (FTS rowid, vector key); id is the public identity, the same in
-- every file that holds the memory. operation is the last that changed it. words, names and dates
-- are derived: what the index adds to the text.
create table memory(
  pk            integer primary key,
  id            text not null unique,
  collection    integer not null references collection(pk),
  type          text not null check (type in ('episodic', 'semantic', 'procedural', 'feedback')),
  text          text not null,
  text_hash     blob not null check (length(text_hash) = 16),
  content_hash  text not null,
  importance    real not null check (importance between 0 and 1),
  polarity      integer not null default 0 check (polarity in (-1, 0, 1)),
  source        text,
  position      integer,
  author        text,
  trust         text not null default 'trusted' check (trust in ('trusted', 'reported', 'untrusted')),
  pinned        integer not null default 0 check (pinned in (0, 1, 2)),
  created_at    real not null,
  expires_at    real,
  valid_from    real,
  valid_until   real,
  superseded_by text,
  superseded_at real,
  words         text,
  names         text,
  dates         text,
  operation     integer not null
) strict;
create index memory_by_recency on memory(collection, created_at, pk);
create index memory_by_type on memory(collection, type, created_at);
create index memory_by_source on memory(collection, source, position) where source is not null;
create index memory_by_content on memory(content_hash);
create index memory_by_text on memory(text_hash);
create index memory_by_expiry on memory(expires_at) where expires_at is not null;
create index memory_by_superseder on memory(superseded_by) where superseded_by is not null;
create index memory_by_pin on memory(collection, created_at) where pinned > 0;

create table tag(
  memory  integer not null references memory(pk) on delete cascade,
  name    text not null,
  ordinal integer not null,
  primary key (memory, name)
) strict, without rowid;
create index tag_by_name on tag(name, memory);

create table entity(
  memory  integer not null references memory(pk) on delete cascade,
  name    text not null,
  ordinal integer not null,
  primary key (memory, name)
) strict, without rowid;
create index entity_by_name on entity(name, memory);

-- Ends are checked when the transaction commits, so that an undo may restore them in any order.
create table link(
  src        integer not null references memory(pk) deferrable initially deferred,
  rel        text not null,
  dst        integer not null references memory(pk) deferrable initially deferred,
  created_at real not null,
  primary key (src, rel, dst)
) strict, without rowid;
create index link_by_target on link(dst, rel, src);

-- The journal. seq orders it inside this file, id names an operation in every file, hash chains
-- each operation to the one before. Operations of one batch are undone together. undone_by and
-- until are derived and stand outside the hash.
create table operation(
  seq        integer primary key,
  id         text not null unique,
  at         real not null,
  op         text not null,
  actor      text not null,
  session    text,
  collection text,
  batch      text,
  undoes     integer references operation(seq),
  undone_by  integer,
  meta       blob,
  hash       blob not null check (length(hash) = 32)
) strict;
create index operation_by_time on operation(at);
create index operation_by_actor on operation(actor, seq);
create index operation_by_batch on operation(batch) where batch is not null;
create index operation_by_undo on operation(undone_by) where undone_by is not null;
create index operation_undoing on operation(seq) where op = 'undo';

-- after is the row's image (JSONB) once the operation is done, NULL for gone. The image before
-- is the previous change of the same key. until is the operation that replaced this image.
-- counterpart is the other memory that a link concerns; row is the memory's pk in this file.
-- digest stands for an image that was erased, so that the chain can still be verified.
create table change(
  pk          integer primary key,
  operation   integer not null references operation(seq),
  kind        text not null,
  key         text not null,
  counterpart text,
  row         integer,
  digest      blob,
  after       blob,
  until       integer not null default 9223372036854775807
) strict;
create unique index change_by_key on change(kind, key, operation);
create index change_by_operation on change(operation);
create index change_by_counterpart on change(counterpart) where counterpart is not null;

-- Memories that were put aside: body (JSONB) holds the memory's image, its links, and what it had
-- hidden, all of which a restore puts back.
create table trash(
  id         text primary key,
  collection text not null,
  deleted_at real not null,
  actor      text not null,
  text_hash  blob not null,
  body       blob not null
) strict, without rowid;
create index trash_by_age on trash(collection, deleted_at);
create index trash_by_text on trash(text_hash);

-- Access counts are no part of history: a recall must never rewrite a memory.
create table touch(
  id      text primary key,
  count   integer not null,
  last_at real not null
) strict, without rowid;

-- Unit vectors by what they were made from, float16 little-endian, one row for each window of the
-- text; sketch holds their signs. They outlive the memory so that undo never needs a model.
create table embedding(
  pk        integer primary key,
  text_hash blob not null,
  model     integer not null references model(pk),
  window    integer not null,
  vector    blob not null,
  sketch    blob not null,
  unique (text_hash, model, window)
) strict;

-- Derived from embedding; may be dropped and rebuilt. rowid = memory.pk * 8192 + window.
create virtual table memory_vec using vec0(collection integer partition key, sketch bit[384]);

create view memory_text(pk, text, words, names, dates, scope) as
  select pk, text, words, names, dates, 'scope' || collection from memory;

create virtual table memory_fts using fts5(
  text, words, names, dates, scope,
  content = 'memory_text', content_rowid = 'pk',
  tokenize = 'porter unicode61 remove_diacritics 2'
);

create virtual table memory_vocab using fts5vocab(memory_fts, row);

create trigger memory_ai after insert on memory begin
  insert into memory_fts(rowid, text, words, names, dates, scope)
  values (new.pk, new.text, new.words, new.names, new.dates, 'scope' || new.collection);
end;

create trigger memory_ad after delete on memory begin
  insert into memory_fts(memory_fts, rowid, text, words, names, dates, scope)
  values ('delete', old.pk, old.text, old.words, old.names, old.dates, 'scope' || old.collection);
end;

create trigger memory_au after update of text, words, names, dates, collection on memory begin
  insert into memory_fts(memory_fts, rowid, text, words, names, dates, scope)
  values ('delete', old.pk, old.text, old.words, old.names, old.dates, 'scope' || old.collection);
  insert into memory_fts(rowid, text, words, names, dates, scope)
  values (new.pk, new.text, new.words, new.names, new.dates, 'scope' || new.collection);
end;

-- Versions that an operation replaced, for recall as of an earlier moment; derived from the
-- journal. A version was there from operation until the one before until.
create table past(
  pk            integer primary key,
  id            text not null,
  operation     integer not null,
  until         integer not null,
  collection    integer not null,
  type          text not null,
  text          text not null,
  text_hash     blob not null,
  importance    real not null,
  polarity      integer not null,
  source        text,
  position      integer,
  author        text,
  trust         text not null,
  created_at    real not null,
  expires_at    real,
  valid_from    real,
  valid_until   real,
  superseded_by text,
  tags          text not null,
  words         text,
  names         text,
  dates         text
) strict;
create index past_by_end on past(collection, until, operation);
create index past_by_memory on past(id, until);

create view past_text(pk, text, words, names, dates, scope) as
  select pk, text, words, names, dates, 'scope' || collection from past;

create virtual table past_fts using fts5(
  text, words, names, dates, scope,
  content = 'past_text', content_rowid = 'pk',
  tokenize = 'porter unicode61 remove_diacritics 2'
);

create trigger past_ai after insert on past begin
  insert into past_fts(rowid, text, words, names, dates, scope)
  values (new.pk, new.text, new.words, new.names, new.dates, 'scope' || new.collection);
end;

create trigger past_ad after delete on past begin
  insert into past_fts(past_fts, rowid, text, words, names, dates, scope)
  values ('delete', old.pk, old.text, old.words, old.names, old.dates, 'scope' || old.collection);
end;

-- Vectors of the word pieces that a text begins with, int8, one after the other: unit vectors
-- times 127. They belong to the text's first window and go with it; only some models give them.
create table token(
  embedding integer primary key references embedding(pk) on delete cascade,
  count     integer not null,
  vectors   blob not null
) strict;
