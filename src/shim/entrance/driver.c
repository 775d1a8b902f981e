/* Stands for the driver at link time: its SONAME is the driver's absolute path, which the entrance then
 * needs. */
typedef int nothing;
