-- The role and the database of the servers. Change the password here and in the file `env`.
CREATE ROLE loomline LOGIN PASSWORD 'change-me';
CREATE DATABASE loomline OWNER loomline ENCODING 'UTF8' TEMPLATE template0;
