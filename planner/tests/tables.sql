create table edges(id int primary key, src int not null, dst int not null, w numeric(10,2), label text);
create table nodes(id bigint primary key, name varchar(40) not null, kind char(3), ok bool, created timestamptz, d date, f float8, r real, u uuid, b bytea, tags text[]);
create table accounts(id int primary key, owner text not null, balance numeric not null);
create table depends(pkg text not null, dep text not null, primary key(pkg, dep));
create table watched(pkg text primary key);
create table nums(a smallint, b int, c bigint, d numeric, e real, f float8);
create table "Odd ""Table"(  "Select" int, "from" text, "ü" int);
create table events(id int primary key, at timestamptz not null, gone timestamptz, kind text not null, x int);
