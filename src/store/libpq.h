/* SPDX-License-Identifier: MIT */
/* libpq, loaded when a store on PostgreSQL is first opened: see base/library.h. */
#ifndef ASSAY_STORE_LIBPQ_H
#define ASSAY_STORE_LIBPQ_H

#include "base/library.h"
#include "config.h"

#include <libpq-fe.h>

#if LOAD_LIBRARIES
#define PQ_FUNCTIONS(X)          \
    X(PQclear)                   \
    X(PQcmdStatus)               \
    X(PQcmdTuples)               \
    X(PQconnectdbParams)         \
    X(PQconnectionNeedsPassword) \
    X(PQconninfo)                \
    X(PQconninfoFree)            \
    X(PQconninfoParse)           \
    X(PQconsumeInput)            \
    X(PQenterPipelineMode)       \
    X(PQerrorMessage)            \
    X(PQexitPipelineMode)        \
    X(PQfinish)                  \
    X(PQflush)                   \
    X(PQfreemem)                 \
    X(PQftype)                   \
    X(PQgetResult)               \
    X(PQgetisnull)               \
    X(PQgetlength)               \
    X(PQgetvalue)                \
    X(PQisBusy)                  \
    X(PQntuples)                 \
    X(PQpipelineSync)            \
    X(PQresultErrorField)        \
    X(PQresultStatus)            \
    X(PQsendPrepare)             \
    X(PQsendQuery)               \
    X(PQsendQueryParams)         \
    X(PQsendQueryPrepared)       \
    X(PQserverVersion)           \
    X(PQsetNoticeReceiver)       \
    X(PQsetnonblocking)          \
    X(PQsocket)                  \
    X(PQstatus)
LIBRARY_TABLE(pq, PQ_FUNCTIONS, "libpq.so.5", "libpq5", "a store on PostgreSQL");
#define PQclear pq.PQclear
#define PQcmdStatus pq.PQcmdStatus
#define PQcmdTuples pq.PQcmdTuples
#define PQconnectdbParams pq.PQconnectdbParams
#define PQconnectionNeedsPassword pq.PQconnectionNeedsPassword
#define PQconninfo pq.PQconninfo
#define PQconninfoFree pq.PQconninfoFree
#define PQconninfoParse pq.PQconninfoParse
#define PQconsumeInput pq.PQconsumeInput
#define PQenterPipelineMode pq.PQenterPipelineMode
#define PQerrorMessage pq.PQerrorMessage
#define PQexitPipelineMode pq.PQexitPipelineMode
#define PQfinish pq.PQfinish
#define PQflush pq.PQflush
#define PQfreemem pq.PQfreemem
#define PQftype pq.PQftype
#define PQgetResult pq.PQgetResult
#define PQgetisnull pq.PQgetisnull
#define PQgetlength pq.PQgetlength
#define PQgetvalue pq.PQgetvalue
#define PQisBusy pq.PQisBusy
#define PQntuples pq.PQntuples
#define PQpipelineSync pq.PQpipelineSync
#define PQresultErrorField pq.PQresultErrorField
#define PQresultStatus pq.PQresultStatus
#define PQsendPrepare pq.PQsendPrepare
#define PQsendQuery pq.PQsendQuery
#define PQsendQueryParams pq.PQsendQueryParams
#define PQsendQueryPrepared pq.PQsendQueryPrepared
#define PQserverVersion pq.PQserverVersion
#define PQsetNoticeReceiver pq.PQsetNoticeReceiver
#define PQsetnonblocking pq.PQsetnonblocking
#define PQsocket pq.PQsocket
#define PQstatus pq.PQstatus
#else
LIBRARY_LINKED(pq);
#endif

#endif
