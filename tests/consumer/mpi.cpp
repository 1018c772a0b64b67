#include <lightcone/distributed/mpi/mpi.h>

int main() { return lc::mpi_ranks()->size() == 1 ? 0 : 1; }
